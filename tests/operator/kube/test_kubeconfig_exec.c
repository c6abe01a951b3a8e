#include "tests/support.h"

#include "base/mem.h"
#include "operator/kube/kubeconfig_exec.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define V1 "client.authentication.k8s.io/v1"
#define ANSWER(status)                                                                             \
    "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":" status "}"

static int decode(const char *text, struct arena *arena, struct exec_credential *ret,
                  struct error *err)
{
    return kubeconfig_exec_decode(text, strlen(text), V1, arena, ret, err);
}

static void token_with_expiry(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct exec_credential c;
    struct error err;
    assert_ok(decode(ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"2026-01-01T00:00:00Z\"}"),
                     arena, &c, &err),
              &err);
    assert_string_equal(c.token, "t");
    assert_null(c.certificate);
    assert_int_equal(c.expires_ms, INT64_C(1767225600000));
}

static void certificate_for_ever(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct exec_credential c;
    struct error err;
    assert_ok(decode(ANSWER("{\"clientCertificateData\":\"C\",\"clientKeyData\":\"K\"}"), arena, &c,
                     &err),
              &err);
    assert_null(c.token);
    assert_string_equal(c.certificate, "C");
    assert_string_equal(c.key, "K");
    assert_int_equal(c.expires_ms, INT64_MAX);
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } rows[] = {
        {"", "no JSON object"},
        {"[]", "no JSON object"},
        {"{}", "kind: is \"\""},
        {"{\"kind\":\"Secret\"}", "kind: is \"Secret\""},
        {"{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\"}",
         "must be client.authentication.k8s.io/v1 as configured"},
        {"{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\"}", "status: neither token"},
        {ANSWER("{}"), "status: neither token"},
        {ANSWER("{\"clientCertificateData\":\"C\"}"), "status.clientKeyData: missing"},
        {ANSWER("{\"token\":\"t\",\"clientKeyData\":\"C\"}"),
         "status.clientCertificateData: missing"},
        {ANSWER("{\"token\":7}"), "status.token: must be text"},
        {ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"soon\"}"),
         "status.expirationTimestamp: must be a time"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct exec_credential c;
        struct error err;
        assert_fails(decode(rows[i].text, arena, &c, &err), &err, ERR_INPUT, rows[i].part);
    }
}

/* What is no JSON may be the secret itself. */
static void secrets_are_not_shown(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct exec_credential c;
    struct error err;
    assert_fails(decode("hunter2", arena, &c, &err), &err, ERR_INPUT, "");
    assert_null(strstr(err.msg, "hunter2"));
}

static void plugin_learns_about_the_cluster(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct kubeconfig_exec exec = {.api_version = V1};
    struct kubeconfig_login login = {.server = "https://h", .exec = &exec};
    assert_string_equal(kubeconfig_exec_info(&login, "CA", arena),
                        "{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\","
                        "\"spec\":{\"interactive\":false}}");
    exec.provide_cluster_info = true;
    assert_string_equal(kubeconfig_exec_info(&login, "CA", arena),
                        "{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\","
                        "\"spec\":{\"interactive\":false,\"cluster\":{\"server\":\"https://h\","
                        "\"certificate-authority-data\":\"Q0E=\"}}}");
    login.server_name = "api";
    assert_non_null(strstr(kubeconfig_exec_info(&login, NULL, arena),
                           "\"cluster\":{\"server\":\"https://h\",\"tls-server-name\":\"api\"}"));
}

static int run(const struct kubeconfig_login *login, struct arena *arena,
               struct exec_credential *ret, struct error *err)
{
    struct command_run *plugin;
    if (kubeconfig_exec_start(&plugin, login, NULL, SUPPORT_PATIENCE_MS, err))
        return -1;
    while (!command_has_finished(plugin)) {
        struct pollfd fds[COMMAND_FDS_MAX];
        poll(fds, command_fds(plugin, fds), -1);
    }
    return kubeconfig_exec_finish(plugin, login->exec, arena, ret, err);
}

/* Runs `script` as the plugin, with $1 and $PLUGIN. */
static int run_script(const char *script, struct arena *arena, struct exec_credential *ret,
                      struct error *err)
{
    const char *args[] = {"-c", script, "plugin", "one"};
    struct kubeconfig_variable env[] = {{"PLUGIN", "two"}, {"HOME", "/plugin"}};
    struct kubeconfig_exec exec = {.what = "FILE: exec",
                                   .api_version = V1,
                                   .command = "sh",
                                   .args = args,
                                   .arg_count = array_length(args),
                                   .env = env,
                                   .env_count = array_length(env),
                                   .install_hint = "get it"};
    struct kubeconfig_login login = {.server = "https://h", .exec = &exec};
    return run(&login, arena, ret, err);
}

static void plugin_gets_arguments_and_environment(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct exec_credential c;
    struct error err;
    setenv("FROM_OUTSIDE", "three", 1);
    assert_ok(run_script("case $KUBERNETES_EXEC_INFO in *'\"interactive\":false'*) i=told;; esac\n"
                         "printf '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\","
                         "\"status\":{\"token\":\"%s-%s-%s-%s-%s\"}}' "
                         "$1 $PLUGIN $FROM_OUTSIDE $HOME $i",
                         arena, &c, &err),
              &err);
    assert_string_equal(c.token, "one-two-three-/plugin-told");
}

static void plugin_that_fails(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct exec_credential c;
    struct error err;
    assert_fails(run_script("echo no login: run it login >&2; exit 3", arena, &c, &err), &err,
                 ERR_IO, "FILE: exec: sh: exit code 3: no login: run it login");
    assert_fails(run_script("echo nonsense", arena, &c, &err), &err, ERR_INPUT,
                 "FILE: exec: sh printed: no JSON object");
}

static void plugin_that_is_not_there(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct kubeconfig_exec exec = {.what = "FILE: exec",
                                   .api_version = V1,
                                   .command = "/nowhere/plugin",
                                   .install_hint = "get it at example.org"};
    struct kubeconfig_login login = {.server = "https://h", .exec = &exec};
    struct exec_credential c;
    struct error err;
    assert_fails(run(&login, arena, &c, &err), &err, ERR_NOT_FOUND,
                 "FILE: exec: /nowhere/plugin: not found: get it at example.org");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(token_with_expiry),
        cmocka_unit_test(certificate_for_ever),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(secrets_are_not_shown),
        cmocka_unit_test(plugin_learns_about_the_cluster),
        cmocka_unit_test(plugin_gets_arguments_and_environment),
        cmocka_unit_test(plugin_that_fails),
        cmocka_unit_test(plugin_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
