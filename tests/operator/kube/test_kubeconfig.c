/* Credentials from real files and a real plugin, at times that the test chooses. */
#include "tests/support.h"

#include "base/mem.h"
#include "operator/kube/kubeconfig.h"
#include "tests/pki.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* 2026-01-01T00:00:00Z */
#define NOW_MS INT64_C(1767225600000)
enum { MINUTE_MS = 60 * 1000, DAY_MS = 24 * 3600 * 1000 };

static struct pki_pair authority, mine, renewed, expired;

static int make_pairs(void **state)
{
    (void)state;
    pki_make("authority", NULL, NOW_MS - DAY_MS, NOW_MS + DAY_MS, &authority);
    pki_make("me", &authority, NOW_MS - DAY_MS, NOW_MS + DAY_MS, &mine);
    pki_make("me", &authority, NOW_MS - DAY_MS, NOW_MS + DAY_MS, &renewed);
    pki_make("me", &authority, NOW_MS - 3 * (int64_t)DAY_MS, NOW_MS - DAY_MS, &expired);
    return 0;
}

static int free_pairs(void **state)
{
    (void)state;
    pki_free(&authority);
    pki_free(&mine);
    pki_free(&renewed);
    pki_free(&expired);
    return 0;
}

/* In an empty directory, and with an environment that leads nowhere. */
static int set_up(void **state)
{
    support_enter_dir(state);
    unsetenv("KUBECONFIG");
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("KUBERNETES_SERVICE_PORT");
    setenv("HOME", *state, 1);
    return 0;
}

__attribute__((format(printf, 3, 4))) static void put(const char *directory, const char *name,
                                                      const char *format, ...)
{
    auto_free char *path = xasprintf("%s/%s", directory, name);
    auto_fclose FILE *file = fopen(path, "w");
    assert_non_null(file);
    va_list args;
    va_start(args, format);
    vfprintf(file, format, args);
    va_end(args);
}

static void take_away(const char *directory, const char *name)
{
    auto_free char *path = xasprintf("%s/%s", directory, name);
    assert_int_equal(unlink(path), 0);
}

/* A kubeconfig named "config" with this user. */
static void put_config(const char *directory, const char *user)
{
    put(directory, "config",
        "current-context: x\n"
        "contexts: [{name: x, context: {cluster: c, user: u, namespace: team}}]\n"
        "clusters: [{name: c, cluster: {server: 'https://api:6443', certificate-authority: ca}}]\n"
        "users: [{name: u, user: %s}]\n",
        user);
    put(directory, "ca", "%s", authority.certificate);
}

static int open_config(const char *directory, struct kubeconfig **ret_config, struct error *err)
{
    auto_free char *path = xasprintf("%s/config", directory);
    struct kubeconfig_options options = {.path = path, .exec_limit_ms = MINUTE_MS};
    return kubeconfig_open(ret_config, &options, NOW_MS, err);
}

static int open_anywhere(const char *service_account, struct kubeconfig **ret_config,
                         struct error *err)
{
    struct kubeconfig_options options = {.service_account = service_account};
    return kubeconfig_open(ret_config, &options, NOW_MS, err);
}

static void put_service_account(const char *directory)
{
    put(directory, "token", "first\n");
    put(directory, "ca.crt", "%s", authority.certificate);
    setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
}

/* Until there are credentials or none can be had: waits for the plugin. */
static int refresh(struct kubeconfig *config, bool renew, int64_t now_ms, struct error *err)
{
    int result;
    while ((result = kubeconfig_refresh(config, renew, now_ms, err)) == KUBECONFIG_PENDING) {
        struct pollfd fds[COMMAND_FDS_MAX];
        int64_t left_ms;
        size_t count = kubeconfig_fds(config, fds, &left_ms);
        assert_true(count > 0);
        poll(fds, count, (int)left_ms);
    }
    return result;
}

/* Refreshes and compares the token. */
static void assert_token(struct kubeconfig *config, bool renew, int64_t now_ms, const char *token)
{
    struct error err;
    assert_ok(refresh(config, renew, now_ms, &err), &err);
    assert_string_equal(kubeconfig_token(config), token);
}

static void a_pod_uses_its_service_account(void **state)
{
    const char *directory = *state;
    struct kubeconfig *config;
    struct error err;
    put_service_account(directory);
    assert_ok(open_anywhere(directory, &config, &err), &err);
    assert_string_equal(kubeconfig_server(config), "https://10.0.0.1:443");
    assert_string_equal(kubeconfig_token(config), "first");
    assert_string_equal(kubeconfig_tls(config).ca, authority.certificate);
    assert_null(kubeconfig_tls(config).certificate);
    assert_string_equal(kubeconfig_namespace(config), "default"); /* it is not said */
    kubeconfig_close(config);

    const struct kubeconfig_options other = {.service_account = directory, .context = "prod"};
    setenv("HOME", directory, 1); /* it has none */
    assert_fails(kubeconfig_open(&config, &other, NOW_MS, &err), &err, ERR_NOT_FOUND,
                 "no way to a cluster");

    put(directory, "namespace", "mine\n");
    setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
    assert_ok(open_anywhere(directory, &config, &err), &err);
    assert_string_equal(kubeconfig_namespace(config), "mine");
    assert_string_equal(kubeconfig_server(config), "https://[fd00::1]:443");
    kubeconfig_close(config);
}

static void a_rotated_token_is_read_again(void **state)
{
    const char *directory = *state;
    struct kubeconfig *config;
    struct error err;
    put_service_account(directory);
    assert_ok(open_anywhere(directory, &config, &err), &err);
    put(directory, "token", "second\n");
    assert_token(config, false, NOW_MS + MINUTE_MS - 1, "first");
    assert_token(config, false, NOW_MS + MINUTE_MS, "second");
    put(directory, "token", "third");
    assert_token(config, true, NOW_MS + MINUTE_MS, "third");
    put(directory, "token", "fourth");
    assert_token(config, false, NOW_MS - DAY_MS, "fourth"); /* the clock was set back */
    assert_int_equal(kubeconfig_tls_version(config), 0);
    kubeconfig_close(config);
}

static void a_token_that_cannot_be_read_leaves_the_old(void **state)
{
    const char *directory = *state;
    struct kubeconfig *config;
    struct error err;
    put_service_account(directory);
    assert_ok(open_anywhere(directory, &config, &err), &err);
    take_away(directory, "token");
    assert_token(config, false, NOW_MS + MINUTE_MS, "first");
    assert_int_equal(kubeconfig_failure(config)->code, ERR_NOT_FOUND);
    auto_free char *part = xasprintf("service account: token: %s/token: No such file", directory);
    assert_fails(refresh(config, true, NOW_MS + MINUTE_MS, &err), &err, ERR_NOT_FOUND, part);
    put(directory, "token", "\n");
    assert_fails(refresh(config, true, NOW_MS, &err), &err, ERR_INPUT, "token: empty");
    put(directory, "token", "two\nlines");
    assert_fails(refresh(config, true, NOW_MS, &err), &err, ERR_INPUT, "not a token");
    assert_string_equal(kubeconfig_token(config), "first");
    put(directory, "token", "second");
    assert_token(config, true, NOW_MS, "second");
    assert_int_equal(kubeconfig_failure(config)->code, ERR_NONE);
    kubeconfig_close(config);
}

static void where_it_looks_and_in_which_order(void **state)
{
    const char *directory = *state;
    struct kubeconfig *config;
    struct error err;
    assert_fails(open_anywhere("/nowhere", &config, &err), &err, ERR_NOT_FOUND,
                 "no way to a cluster: KUBECONFIG is not set, this is no pod with a service "
                 "account (/nowhere)");
    auto_free char *home = xasprintf("%s/.kube", directory);
    assert_int_equal(mkdir(home, 0700), 0);
    put_config(home, "{token: home}");
    assert_ok(open_anywhere("/nowhere", &config, &err), &err);
    assert_string_equal(kubeconfig_token(config), "home");
    kubeconfig_close(config);

    put_service_account(directory);
    assert_ok(open_anywhere(directory, &config, &err), &err);
    assert_string_equal(kubeconfig_token(config), "first");
    kubeconfig_close(config);

    put_config(directory, "{token: named}");
    auto_free char *paths = xasprintf("%s/missing:%s/config", directory, directory);
    setenv("KUBECONFIG", paths, 1);
    assert_ok(open_anywhere(directory, &config, &err), &err);
    assert_string_equal(kubeconfig_token(config), "named");
    kubeconfig_close(config);

    /* a path that was named is one path */
    assert_fails(
        kubeconfig_open(&config, &(struct kubeconfig_options){.path = paths}, NOW_MS, &err), &err,
        ERR_NOT_FOUND, paths);

    setenv("KUBECONFIG", "/nowhere/config", 1);
    assert_fails(open_anywhere(directory, &config, &err), &err, ERR_NOT_FOUND,
                 "kubeconfig: /nowhere/config: No such file");
    setenv("KUBECONFIG", ":", 1);
    assert_fails(open_anywhere(directory, &config, &err), &err, ERR_NOT_FOUND, "no path in it");
}

static void what_is_wrong_with_certificates_is_named(void **state)
{
    const char *directory = *state;
    struct kubeconfig *config;
    struct error err;
    put_config(directory, "{client-certificate: me.crt, client-key: me.key}");
    auto_free char *missing = xasprintf(
        "%s/config: user \"u\": client-certificate: %s/me.crt: No such file", directory, directory);
    assert_fails(open_config(directory, &config, &err), &err, ERR_NOT_FOUND, missing);
    put(directory, "me.key", "%s", mine.key);
    put(directory, "me.crt", "%s", expired.certificate);
    assert_fails(open_config(directory, &config, &err), &err, ERR_CONFIG,
                 "user \"u\": client-certificate: the certificate expired at 2025-12-31T00:00:00Z");
    put(directory, "me.crt", "%s", renewed.certificate);
    assert_fails(open_config(directory, &config, &err), &err, ERR_CONFIG,
                 "user \"u\": client-key: is not the key of the certificate");
    put(directory, "me.crt", "%s", mine.certificate);
    put(directory, "ca", "%s", expired.certificate);
    assert_fails(open_config(directory, &config, &err), &err, ERR_CONFIG,
                 "cluster \"c\": certificate-authority: the certificate expired at 2025-12-31");
    put(directory, "ca", "%s", authority.certificate);
    assert_ok(open_config(directory, &config, &err), &err);
    assert_string_equal(kubeconfig_tls(config).certificate, mine.certificate);
    assert_string_equal(kubeconfig_tls(config).key, mine.key);
    assert_null(kubeconfig_token(config));
    kubeconfig_close(config);
}

static void rotated_certificates_make_a_new_version(void **state)
{
    const char *directory = *state;
    struct kubeconfig *config;
    struct error err;
    put_config(directory, "{client-certificate: me.crt, client-key: me.key}");
    put(directory, "me.crt", "%s", mine.certificate);
    put(directory, "me.key", "%s", mine.key);
    assert_ok(open_config(directory, &config, &err), &err);
    uint64_t before = kubeconfig_tls_version(config);
    put(directory, "me.crt", "%s", renewed.certificate); /* and the key is late */
    assert_ok(refresh(config, false, NOW_MS + MINUTE_MS, &err), &err);
    assert_int_equal(kubeconfig_tls_version(config), before);
    assert_string_equal(kubeconfig_tls(config).certificate, mine.certificate);
    put(directory, "me.key", "%s", renewed.key);
    assert_ok(refresh(config, false, NOW_MS + 2 * MINUTE_MS, &err), &err);
    assert_int_not_equal(kubeconfig_tls_version(config), before);
    assert_string_equal(kubeconfig_tls(config).certificate, renewed.certificate);
    kubeconfig_close(config);
}

/* A plugin whose token counts its runs, and which expires a minute after NOW_MS. It fails while
 * there is a file named "broken". */
static void put_plugin(const char *directory)
{
    put(directory, "plugin",
        "#!/bin/sh\n"
        "cd '%s' && [ ! -e broken ] || { echo 'login please' >&2; exit 1; }\n"
        "echo run >>runs\n"
        "printf '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
        "\"status\":{\"token\":\"t%%d\",\"expirationTimestamp\":\"2026-01-01T00:01:00Z\"}}' "
        "$(wc -l <runs)\n",
        directory);
    auto_free char *path = xasprintf("%s/plugin", directory);
    assert_int_equal(chmod(path, 0700), 0);
    put_config(directory,
               "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin}}");
}

static void a_plugin_runs_when_it_must(void **state)
{
    const char *directory = *state;
    struct kubeconfig *config;
    struct error err;
    put_plugin(directory);
    assert_ok(open_config(directory, &config, &err), &err);
    assert_token(config, false, NOW_MS, "t1");
    assert_token(config, false, NOW_MS + MINUTE_MS - 1, "t1");
    assert_token(config, false, NOW_MS + MINUTE_MS, "t2");       /* expired */
    assert_token(config, true, NOW_MS + MINUTE_MS + 4999, "t2"); /* not so soon again */
    assert_token(config, true, NOW_MS + MINUTE_MS + 5000, "t3");
    kubeconfig_close(config);
}

static void a_plugin_that_fails_is_not_run_for_every_request(void **state)
{
    const char *directory = *state;
    struct kubeconfig *config;
    struct error err;
    put_plugin(directory);
    put(directory, "broken", "%s", "");
    assert_ok(open_config(directory, &config, &err), &err);
    assert_fails(refresh(config, false, NOW_MS, &err), &err, ERR_IO, "exit code 1: login please");
    take_away(directory, "broken");
    assert_fails(refresh(config, false, NOW_MS + 4999, &err), &err, ERR_IO, "login please");
    assert_token(config, false, NOW_MS + 5000, "t1");
    put(directory, "broken", "%s", "");
    assert_fails(refresh(config, true, NOW_MS + 10000, &err), &err, ERR_IO, "login please");
    assert_token(config, false, NOW_MS + 10001, "t1"); /* for those whom it serves still */
    kubeconfig_close(config);
}

/* Until it has ended. */
static void follow(struct kubeconfig *config, int64_t now_ms)
{
    struct pollfd fds[COMMAND_FDS_MAX];
    int64_t left_ms;
    for (size_t count; (count = kubeconfig_fds(config, fds, &left_ms));) {
        poll(fds, count, (int)left_ms);
        kubeconfig_follow(config, now_ms);
    }
}

static void a_plugin_runs_before_its_credential_ends(void **state)
{
    const char *directory = *state;
    struct kubeconfig *config;
    struct error err;
    struct pollfd fds[COMMAND_FDS_MAX];
    int64_t left_ms;
    put_plugin(directory);
    assert_ok(open_config(directory, &config, &err), &err);
    assert_token(config, false, NOW_MS, "t1");
    assert_token(config, false, NOW_MS + MINUTE_MS * 3 / 4 - 1, "t1");
    assert_int_equal(kubeconfig_fds(config, fds, &left_ms), 0);
    assert_ok(kubeconfig_refresh(config, false, NOW_MS + MINUTE_MS * 3 / 4, &err), &err);
    assert_string_equal(kubeconfig_token(config), "t1"); /* the old serves meanwhile */
    assert_true(kubeconfig_fds(config, fds, &left_ms) > 0);
    follow(config, NOW_MS + MINUTE_MS * 3 / 4);
    assert_token(config, false, NOW_MS + MINUTE_MS * 3 / 4, "t2");

    put(directory, "broken", "%s", "");
    assert_ok(kubeconfig_refresh(config, false, NOW_MS + MINUTE_MS - 1, &err), &err);
    follow(config, NOW_MS + MINUTE_MS - 1);
    assert_token(config, false, NOW_MS + MINUTE_MS - 1, "t2");
    assert_non_null(strstr(kubeconfig_failure(config)->msg, "login please"));
    kubeconfig_close(config);
}

static void nobody_waits_for_a_plugin_that_hangs(void **state)
{
    const char *directory = *state;
    struct kubeconfig *config;
    struct error err;
    put(directory, "plugin", "#!/bin/sh\nexec sleep 1000\n");
    auto_free char *plugin = xasprintf("%s/plugin", directory);
    assert_int_equal(chmod(plugin, 0700), 0);
    put_config(directory,
               "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin}}");
    auto_free char *path = xasprintf("%s/config", directory);
    struct kubeconfig_options options = {.path = path, .exec_limit_ms = 100};
    assert_ok(kubeconfig_open(&config, &options, NOW_MS, &err), &err);
    assert_int_equal(kubeconfig_refresh(config, false, NOW_MS, &err), KUBECONFIG_PENDING);
    assert_fails(refresh(config, false, NOW_MS, &err), &err, ERR_TIMEOUT, "timed out after 0.1 s");
    kubeconfig_close(config);

    options.exec_limit_ms = MINUTE_MS;
    assert_ok(kubeconfig_open(&config, &options, NOW_MS, &err), &err);
    assert_int_equal(kubeconfig_refresh(config, false, NOW_MS, &err), KUBECONFIG_PENDING);
    kubeconfig_close(config); /* ends it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, set_up, support_leave_dir)
        IN_DIRECTORY(a_pod_uses_its_service_account),
        IN_DIRECTORY(a_rotated_token_is_read_again),
        IN_DIRECTORY(a_token_that_cannot_be_read_leaves_the_old),
        IN_DIRECTORY(where_it_looks_and_in_which_order),
        IN_DIRECTORY(what_is_wrong_with_certificates_is_named),
        IN_DIRECTORY(rotated_certificates_make_a_new_version),
        IN_DIRECTORY(a_plugin_runs_when_it_must),
        IN_DIRECTORY(a_plugin_runs_before_its_credential_ends),
        IN_DIRECTORY(nobody_waits_for_a_plugin_that_hangs),
        IN_DIRECTORY(a_plugin_that_fails_is_not_run_for_every_request),
    };
    return cmocka_run_group_tests(tests, make_pairs, free_pairs);
}
