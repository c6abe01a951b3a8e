#include "tests/support.h"

#include "base/log.h"
#include "base/mem.h"
#include "operator/config.h"

#include <string.h>

static const char *no_env(const char *name)
{
    (void)name;
    return NULL;
}

static const char *pod_env(const char *name)
{
    static const char *const pairs[][2] = {{"MY_POD_NAMESPACE", "training"},
                                           {"MY_POD_NAME", "operator-1"},
                                           {"KUBEFLOW_NAMESPACE", "team-a"}};
    for (size_t i = 0; i < array_length(pairs); i++)
        if (!strcmp(pairs[i][0], name))
            return pairs[i][1];
    return NULL;
}

static int parse(struct operator_config *c, char *const *words,
                 const char *(*env)(const char *name), struct error *err)
{
    int count = 0;
    while (words[count])
        count++;
    return operator_config_parse(c, count, words, env, err);
}

static void defaults_are_the_training_operators(void **state)
{
    (void)state;
    struct operator_config c;
    struct error err;
    assert_ok(parse(&c, (char *[]){NULL}, no_env, &err), &err);
    assert_string_equal(c.metrics_bind_address, ":8080");
    assert_string_equal(c.health_probe_bind_address, ":8081");
    assert_null(c.ui_bind_address); /* UI_BIND_ADDRESS, if that is free */
    assert_false(c.leader_elect);
    assert_null(c.namespace_);
    assert_null(c.gang_scheduler_name);
    assert_int_equal(c.init_max_tries, 0);
    assert_int_equal(c.default_backoff_limit, 6);
    assert_int_equal(c.node_lost_s, 300);
    assert_int_equal(c.overdue_s, 60);
    assert_int_equal(c.avoid_node_s, 3600);
    assert_false(c.watch_nodes);
    assert_false(c.kueue);
    assert_string_equal(c.signs.taints, NODE_TAINTS);
    assert_string_equal(c.signs.conditions, NODE_CONDITIONS);
}

static void signs_of_bad_nodes_are_checked(void **state)
{
    (void)state;
    static const struct {
        char *word;
        const char *problem; /* NULL: none */
    } rows[] = {
        {"--bad-node-taints=", NULL},
        {"--bad-node-taints=a/b=c:NoSchedule,d/*", NULL},
        {"--bad-node-taints=a:Never", "--bad-node-taints: a:Never: the effect must be"},
        {"--bad-node-conditions=A,B=False", NULL},
        {"--bad-node-conditions=A=No", "--bad-node-conditions: A=No: must be"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct operator_config c;
        struct error err;
        int result =
            parse(&c, (char *[]){"--watch-nodes", "--kueue", rows[i].word, NULL}, no_env, &err);
        if (rows[i].problem) {
            assert_fails(result, &err, ERR_CONFIG, rows[i].problem);
            continue;
        }
        assert_ok(result, &err);
        assert_true(c.watch_nodes && c.kueue);
    }
}

static void what_cannot_be_a_namespace_is_refused(void **state)
{
    (void)state;
#define LETTERS_63 "a23456789012345678901234567890123456789012345678901234567890123"
    static char longest[] = "--namespace=" LETTERS_63, longer[] = "--namespace=a" LETTERS_63;
    static char *const good[] = {"--namespace=a", "--namespace=0-a", longest, "--namespace="};
    static char *const bad[] = {"--namespace=Bad_NS", "--namespace=-a", "--namespace=a-",
                                "--namespace=a.b",    longer,           "--namespace=a b",
                                "--namespace=a,b"};
    struct operator_config c;
    struct error err;
    for (size_t i = 0; i < array_length(good); i++)
        assert_ok(parse(&c, (char *[]){good[i], NULL}, no_env, &err), &err);
    for (size_t i = 0; i < array_length(bad); i++)
        assert_fails(parse(&c, (char *[]){bad[i], NULL}, no_env, &err), &err, ERR_CONFIG,
                     "must be the name of a namespace");
}

static void an_unknown_flag_is_told_in_few_words(void **state)
{
    (void)state;
    struct operator_config c;
    struct error err;
    assert_int_equal(parse(&c, (char *[]){"--bogus", NULL}, no_env, &err), -1);
    assert_string_equal(err.msg, "unknown option --bogus; --help lists all options");
    assert_int_equal(parse(&c, (char *[]){"--leader-elekt=true", NULL}, no_env, &err), -1);
    assert_string_equal(err.msg, "unknown option --leader-elekt=true (the nearest is "
                                 "--leader-elect); --help lists all options");
}

static void the_environment_says_who_we_are(void **state)
{
    (void)state;
    struct operator_config c;
    struct error err;
    assert_ok(parse(&c, (char *[]){"--namespace=", NULL}, pod_env, &err), &err);
    assert_string_equal(c.own_namespace, "training");
    assert_string_equal(c.own_name, "operator-1");
    assert_null(c.namespace_); /* a flag wins, and empty means all */
    assert_ok(parse(&c, (char *[]){NULL}, pod_env, &err), &err);
    assert_string_equal(c.namespace_, "team-a");
}

static void flags_of_the_training_operator_are_taken(void **state)
{
    (void)state;
    struct operator_config c;
    struct error err;
    char *words[] = {"-zap-devel", "--enable-scheme=pytorchjob", "-kube-api-qps",
                     "50",         "-leader-elect=true",         "--log-level=debug",
                     NULL};
    assert_ok(parse(&c, words, no_env, &err), &err);
    assert_true(c.leader_elect);
    assert_int_equal(c.log_level, LOG_DEBUG);
    assert_int_equal(c.ignored.count, 2); /* the scheme is ours */
    assert_string_equal(c.ignored.items[1], "kube-api-qps");
}

/* Kinds of jobs that the operator is to run, as the training operator takes them. */
static void schemes_without_ours_are_refused(void **state)
{
    (void)state;
    static const struct {
        char *words[2];
        const char *problem; /* NULL: none */
    } rows[] = {
        {{"--enable-scheme=pytorchjob"}, NULL},
        {{"--enable-scheme=PyTorchJob"}, NULL},
        {{"--enable-scheme=tfjob", "--enable-scheme=pytorchjob"}, NULL},
        {{"--enable-scheme=tfjob"}, "--enable-scheme=tfjob: shoal-operator runs PyTorchJobs alone"},
        {{"--enable-scheme=tfjob", "--enable-scheme=mpijob"}, "--enable-scheme=tfjob: "},
        {{"--enable-scheme=pytorchjob,tfjob"}, "--enable-scheme=pytorchjob,tfjob: "},
        {{"--enable-scheme="}, "--enable-scheme=: "},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct operator_config c;
        struct error err;
        char *words[] = {rows[i].words[0], rows[i].words[1], NULL};
        int result = parse(&c, words, no_env, &err);
        if (rows[i].problem)
            assert_fails(result, &err, ERR_CONFIG, rows[i].problem);
        else
            assert_ok(result, &err);
    }
    assert_true(operator_config_runs_scheme("pytorchjob") && !operator_config_runs_scheme("tfjob"));
}

static void addresses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *host;
        int port; /* -1: refused */
    } rows[] = {
        {":8080", "", 8080},     {"0", "", 0},     {"127.0.0.1:1", "127.0.0.1", 1},
        {"[::1]:80", "::1", 80}, {"8080", "", -1}, {":0", "", -1},
        {":65536", "", -1},      {"", "", -1},     {":", "", -1},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        char host[64];
        int port;
        struct error err;
        int result = operator_config_address(rows[i].text, host, sizeof host, &port, &err);
        if (rows[i].port < 0) {
            assert_fails(result, &err, ERR_CONFIG, "must be [HOST]:PORT");
            continue;
        }
        assert_ok(result, &err);
        assert_string_equal(host, rows[i].host);
        assert_int_equal(port, rows[i].port);
    }
    struct operator_config c;
    struct error err;
    int result = parse(&c, (char *[]){"--metrics-bind-address=x", NULL}, no_env, &err);
    assert_fails(result, &err, ERR_CONFIG, "--metrics-bind-address: x: must be");
    result = parse(&c, (char *[]){"--ui-bind-address=8082", NULL}, no_env, &err);
    assert_fails(result, &err, ERR_CONFIG, "--ui-bind-address: 8082: must be");
    assert_ok(parse(&c, (char *[]){"--ui-bind-address=", NULL}, no_env, &err), &err);
    assert_string_equal(c.ui_bind_address, "0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_the_training_operators),
        cmocka_unit_test(what_cannot_be_a_namespace_is_refused),
        cmocka_unit_test(an_unknown_flag_is_told_in_few_words),
        cmocka_unit_test(the_environment_says_who_we_are),
        cmocka_unit_test(flags_of_the_training_operator_are_taken),
        cmocka_unit_test(schemes_without_ours_are_refused),
        cmocka_unit_test(addresses),
        cmocka_unit_test(signs_of_bad_nodes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
