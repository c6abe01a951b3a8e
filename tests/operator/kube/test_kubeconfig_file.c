#include "tests/support.h"

#include "base/mem.h"
#include "operator/kube/kubeconfig_file.h"

#include <string.h>

#define CLUSTER    "clusters: [{name: c, cluster: {server: 'https://h:6443'}}]\n"
#define CONTEXT    "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
#define USER(body) CLUSTER CONTEXT "users: [{name: u, user: {" body "}}]\n"

static const char *const whole =
    "apiVersion: v1\n"
    "kind: Config\n"
    "preferences: {}\n"
    "current-context: work\n"
    "clusters:\n"
    "- name: c1\n"
    "  cluster: {server: 'https://one:6443/', "
    "certificate-authority: pki/ca.crt, tls-server-name: api}\n"
    "- name: c2\n"
    "  cluster: {server: 'https://two/k8s/clusters/c', "
    "certificate-authority: /x, certificate-authority-data: Q0E=}\n"
    "users:\n"
    "- name: u1\n"
    "  user: {client-certificate: ./me.crt, client-key: /abs/me.key}\n"
    "- name: u2\n"
    "  user: {token: old, tokenFile: ../token}\n"
    "contexts:\n"
    "- {name: work, context: {cluster: c1, user: u1}}\n"
    "- {name: play, context: {cluster: c2, user: u2, namespace: team}}\n"
    "- {name: bare, context: {cluster: c2}}\n"
    "- {name: no-cluster, context: {user: u1}}\n"
    "- {name: lost, context: {cluster: c1, user: nobody}}\n";

static int login(const char *text, const char *context, struct arena *arena,
                 struct kubeconfig_login *ret_login, struct error *err)
{
    struct kubeconfig_file *files = NULL;
    if (kubeconfig_file_add(&files, text, strlen(text), "/home/me/config", arena, err))
        return -1;
    return kubeconfig_file_login(files, context, arena, ret_login, err);
}

static void current_context_is_the_login(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct kubeconfig_login l;
    struct error err;
    assert_ok(login(whole, NULL, arena, &l, &err), &err);
    assert_string_equal(l.server, "https://one:6443");
    assert_string_equal(l.server_name, "api");
    assert_string_equal(l.ca.path, "/home/me/pki/ca.crt");
    assert_string_equal(l.certificate.path, "/home/me/./me.crt");
    assert_string_equal(l.certificate.what, "/home/me/config: user \"u1\": client-certificate");
    assert_string_equal(l.key.path, "/abs/me.key");
    assert_null(l.token.path);
    assert_null(l.token.text);
    assert_null(l.exec);
    assert_null(l.namespace_);
}

static void another_context_by_name(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct kubeconfig_login l;
    struct error err;
    assert_ok(login(whole, "play", arena, &l, &err), &err);
    assert_string_equal(l.server, "https://two/k8s/clusters/c");
    assert_null(l.server_name);
    assert_string_equal(l.ca.text, "CA"); /* the data wins over the path */
    assert_null(l.ca.path);
    assert_string_equal(l.token.path, "/home/me/../token");
    assert_null(l.token.text);
    assert_null(l.certificate.path);
    assert_string_equal(l.namespace_, "team");
    assert_ok(login(whole, "bare", arena, &l, &err), &err);
    assert_null(l.token.path);
}

static void exec_plugin_is_read(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct kubeconfig_login l;
    struct error err;
    assert_ok(login(USER("exec: {apiVersion: client.authentication.k8s.io/v1beta1, "
                         "command: bin/get-token, args: [a, '2'], interactiveMode: IfAvailable, "
                         "env: [{name: A, value: b}], installHint: install it, "
                         "provideClusterInfo: true}"),
                    NULL, arena, &l, &err),
              &err);
    assert_non_null(l.exec);
    assert_string_equal(l.exec->command, "/home/me/bin/get-token");
    assert_int_equal(l.exec->arg_count, 2);
    assert_string_equal(l.exec->args[1], "2");
    assert_int_equal(l.exec->env_count, 1);
    assert_string_equal(l.exec->env[0].name, "A");
    assert_string_equal(l.exec->env[0].value, "b");
    assert_string_equal(l.exec->install_hint, "install it");
    assert_true(l.exec->provide_cluster_info);
    assert_string_equal(l.exec->what, "/home/me/config: user \"u\": exec");
    assert_ok(login(USER("exec: {apiVersion: client.authentication.k8s.io/v1, command: aws}"), NULL,
                    arena, &l, &err),
              &err);
    assert_string_equal(l.exec->command, "aws");
}

static void of_several_files_the_first_wins(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct kubeconfig_file *files = NULL;
    struct kubeconfig_login l;
    struct error err;
    const char *first = "contexts: [{name: x, context: {cluster: c1, user: u2}}]\n"
                        "clusters: [{name: c2, cluster: {server: 'https://mine'}}]\n";
    assert_ok(kubeconfig_file_add(&files, first, strlen(first), "/a/first", arena, &err), &err);
    assert_ok(kubeconfig_file_add(&files, whole, strlen(whole), "/b/second", arena, &err), &err);
    assert_ok(kubeconfig_file_login(files, "play", arena, &l, &err), &err);
    assert_string_equal(l.server, "https://mine");
    assert_ok(kubeconfig_file_login(files, "x", arena, &l, &err), &err);
    assert_string_equal(l.server, "https://one:6443");
    assert_string_equal(l.token.path, "/b/../token");
    assert_ok(kubeconfig_file_login(files, NULL, arena, &l, &err), &err);
    assert_string_equal(l.key.path, "/abs/me.key");
}

struct refusal {
    const char *text, *context;
    enum error_code code;
    const char *part;
};

static const struct refusal refusals[] = {
    {": [", NULL, ERR_INPUT, "/home/me/config:1:"},
    {"- a\n", NULL, ERR_INPUT, "/home/me/config: must be a mapping, not a list"},
    {"a: b\n---\nc: d\n", NULL, ERR_INPUT, "more than one document"},
    {"clusters: [{name: c, cluster: {server: 7}}]\n", NULL, ERR_INPUT,
     "/home/me/config: clusters[0].cluster.server: must be text"},
    {USER("client-key-data: '%%'"), NULL, ERR_INPUT,
     "users[0].user.client-key-data: must be base64"},
    {USER("client-key-data: '-----BEGIN EC PRIVATE KEY-----'"), NULL, ERR_INPUT, "must be base64"},
    {CLUSTER, NULL, ERR_CONFIG, "/home/me/config: current-context: missing"},
    {"", NULL, ERR_CONFIG, "/home/me/config: current-context: missing"},
    {"", "y", ERR_CONFIG, "/home/me/config: no context \"y\" in it"},
    {CLUSTER CONTEXT, "y", ERR_CONFIG, "no context \"y\""},
    {CLUSTER CONTEXT, NULL, ERR_CONFIG, "/home/me/config: context \"x\": no user \"u\" in it"},
    {CONTEXT, NULL, ERR_CONFIG, "context \"x\": no cluster \"c\" in it"},
    {CONTEXT
     "clusters: [{name: c, cluster: {server: 'https://h', insecure-skip-tls-verify: true}}]",
     NULL, ERR_UNSUPPORTED, "cluster \"c\": insecure-skip-tls-verify: refused"},
    {CONTEXT "clusters: [{name: c, cluster: {server: 'https://h', proxy-url: 'http://p'}}]", NULL,
     ERR_UNSUPPORTED, "proxy-url: not supported"},
    {CONTEXT "clusters: [{name: c, cluster: {}}]", NULL, ERR_CONFIG, "server: missing"},
    {CONTEXT "clusters: [{name: c, cluster: {server: 'h:6443'}}]", NULL, ERR_CONFIG,
     "must begin with https://"},
    {CONTEXT "clusters: [{name: c, cluster: {server: 'http://h:6443'}}]", NULL, ERR_CONFIG,
     "must begin with https://"},
    {CONTEXT "clusters: [{name: c, cluster: {server: 'http://localhost.evil.org'}}]", NULL,
     ERR_CONFIG, "must begin with https://"},
    {CONTEXT "clusters: [{name: c, cluster: {server: 'http://localhost:1@evil.org'}}]", NULL,
     ERR_CONFIG, "must begin with https://"},
    {CONTEXT "clusters: [{name: c, cluster: {server: 'http://127.0.0.1@evil.org'}}]", NULL,
     ERR_CONFIG, "must begin with https://"},
    {USER("username: me, password: secret"), NULL, ERR_UNSUPPORTED,
     "user \"u\": username: not supp"},
    {USER("auth-provider: {name: gcp}"), NULL, ERR_UNSUPPORTED, "auth-provider: not supported"},
    {USER("as: somebody"), NULL, ERR_UNSUPPORTED, "as: not supported"},
    {USER("client-certificate: a"), NULL, ERR_CONFIG, "user \"u\": client-key: missing"},
    {USER("client-key: a"), NULL, ERR_CONFIG, "user \"u\": client-certificate: missing"},
    {USER("token: t, exec: {apiVersion: client.authentication.k8s.io/v1, command: c}"), NULL,
     ERR_CONFIG, "keep one of them"},
    {USER("exec: {apiVersion: client.authentication.k8s.io/v1}"), NULL, ERR_CONFIG,
     "exec.command: missing"},
    {USER("exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: c}"), NULL,
     ERR_UNSUPPORTED, "exec.apiVersion: \"client.authentication.k8s.io/v1alpha1\""},
    {USER("exec: {command: c}"), NULL, ERR_UNSUPPORTED, "exec.apiVersion: \"\""},
    {USER("exec: {apiVersion: client.authentication.k8s.io/v1, command: c, "
          "interactiveMode: Always}"),
     NULL, ERR_UNSUPPORTED, "nobody is here"},
    {USER("exec: {apiVersion: client.authentication.k8s.io/v1, command: c, env: [{value: v}]}"),
     NULL, ERR_CONFIG, "exec.env[0].name"},
    {USER("exec: 7"), NULL, ERR_INPUT, "users[0].user.exec: must be a mapping"},
};

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(refusals); i++) {
        auto_arena struct arena *arena = arena_open();
        struct kubeconfig_login l;
        struct error err;
        const struct refusal *r = &refusals[i];
        assert_fails(login(r->text, r->context, arena, &l, &err), &err, r->code, r->part);
    }
}

static void plain_http_is_for_this_machine(void **state)
{
    (void)state;
    static const char *const servers[] = {"http://127.0.0.1:8001", "http://localhost:8001",
                                          "http://[::1]:8001"};
    for (size_t i = 0; i < array_length(servers); i++) {
        auto_arena struct arena *arena = arena_open();
        auto_free char *text =
            xasprintf("contexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n"
                      "clusters: [{name: c, cluster: {server: '%s/'}}]\n",
                      servers[i]);
        struct kubeconfig_login l;
        struct error err;
        assert_ok(login(text, NULL, arena, &l, &err), &err);
        assert_string_equal(l.server, servers[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(current_context_is_the_login),
        cmocka_unit_test(another_context_by_name),
        cmocka_unit_test(exec_plugin_is_read),
        cmocka_unit_test(of_several_files_the_first_wins),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(plain_http_is_for_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
