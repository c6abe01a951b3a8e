/* Containers as processes of a described machine: arguments, environment, and what is refused. */
#include "base/contract.h"
#include "base/mem.h"
#include "operator/local/local_container.h"
#include "tests/support.h"

#include <string.h>

static const char *const inherited[] = {"PATH=/usr/bin",    "HOME=/root",
                                        "RANK=7",           "LOCAL_RANK=1",
                                        "PET_NNODES=9",     "MASTER_ADDR=elsewhere",
                                        "EMPTY=",           "SHOAL_RESTART_COUNT=5",
                                        "SHOAL_JOB=lea/ks", NULL};

static struct local_address addresses[] = {
    {.service = "j-master-0", .port = 23456, .local_port = 20001},
    {.service = "j-worker-0", .port = 23456, .local_port = 20002},
    {.service = "j-worker-0", .port = 29500, .local_port = 20003},
};
static const struct local_addresses book = {.items = addresses, .count = 3};
static const struct local_site site = {.environment = inherited,
                                       .program_dir = "/opt/shoal",
                                       .progress_socket = "/run/s/progress",
                                       .addresses = &book};

static struct pair labels[] = {{"training.kubeflow.org/replica-index", "2"}};
static const struct pod_spec pod = {
    .name = "j-worker-2", .namespace_ = "team", .labels = {.items = labels, .count = 1}};

static int build(struct arena *arena, const struct container *container,
                 struct local_process *process, struct error *err)
{
    return local_container_build(&pod, container, &site, "SHOAL_RESTART_COUNT=3", arena, process,
                                 err);
}

static const char *value_of(const struct local_process *process, const char *name)
{
    size_t length = strlen(name);
    const char *found = NULL;
    for (const char *const *entry = process->env; *entry; entry++)
        if (!strncmp(*entry, name, length) && (*entry)[length] == '=') {
            assert_null(found); /* once */
            found = *entry + length + 1;
        }
    return found ? found : "(unset)";
}

static void test_variables(void **state)
{
    (void)state;
    static const struct {
        enum env_source source;
        const char *name, *value, *seen;
    } rows[] = {
        {ENV_LITERAL, "MASTER_ADDR", "j-master-0", "127.0.0.1"},
        {ENV_LITERAL, "MASTER_PORT", "23456", "20001"},
        {ENV_LITERAL, "PET_MASTER_PORT", "23456", "20001"},
        {ENV_LITERAL, "PET_RDZV_ENDPOINT", "j-worker-0:23456", "127.0.0.1:20002"},
        {ENV_LITERAL, "SIDE", "j-worker-0:29500", "127.0.0.1:20003"},
        {ENV_LITERAL, "OTHER_PORT", "j-worker-0:1", "j-worker-0:1"},
        {ENV_LITERAL, "OTHER_HOST", "j-worker-00:23456", "j-worker-00:23456"},
        {ENV_LITERAL, "PORT", "23456", "23456"},
        {ENV_LITERAL, "URL", "tcp://$(MASTER_ADDR):$(MASTER_PORT)", "tcp://127.0.0.1:20001"},
        {ENV_LITERAL, "EARLIER", "$(LATER)", "$(LATER)"},
        {ENV_LITERAL, "LATER", "x$(PORT)", "x23456"},
        {ENV_LITERAL, "IMAGE", "$(HOME)", "$(HOME)"}, /* the image's are not referred to */
        {ENV_FIELD, "NAME", "metadata.name", "j-worker-2"},
        {ENV_FIELD, "SPACE", "metadata.namespace", "team"},
        {ENV_FIELD, "INDEX", "metadata.labels['training.kubeflow.org/replica-index']", "2"},
        {ENV_FIELD, "NOTE", "metadata.annotations['none']", ""},
        {ENV_FIELD, "IP", "status.podIP", "127.0.0.1"},
        {ENV_SECRET, "TOKEN", "hub/token", "(unset)"}, /* optional */
    };
    enum { COUNT = sizeof rows / sizeof rows[0] };
    struct env_var vars[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        vars[i] = (struct env_var){.name = rows[i].name,
                                   .value = rows[i].value,
                                   .source = rows[i].source,
                                   .optional = true};
    const char *words[] = {"train", "--master=$(MASTER_ADDR)", "$$(PORT)"};
    struct container container = {.name = "pytorch",
                                  .command = {.items = words, .count = 1},
                                  .args = {.items = words + 1, .count = 2},
                                  .env = vars,
                                  .env_count = COUNT};
    auto_arena struct arena *arena = arena_open();
    struct local_process process;
    struct error err;
    assert_ok(build(arena, &container, &process, &err), &err);
    for (size_t i = 0; i < COUNT; i++)
        assert_string_equal(value_of(&process, rows[i].name), rows[i].seen);
    assert_string_equal(process.argv[0], "train");
    assert_string_equal(process.argv[1], "--master=127.0.0.1");
    assert_string_equal(process.argv[2], "$(PORT)");
    assert_null(process.argv[3]);

    static const struct {
        const char *name, *seen;
    } others[] = {{"HOME", "/root"},
                  {"EMPTY", ""},
                  {"HOSTNAME", "j-worker-2"},
                  {"PATH", "/usr/bin:/opt/shoal"},
                  {"RANK", "(unset)"},
                  {"LOCAL_RANK", "(unset)"},
                  {"PET_NNODES", "(unset)"},
                  {"SHOAL_PROGRESS_SOCKET", "/run/s/progress"},
                  {"SHOAL_RESTART_COUNT", "3"},
                  {"SHOAL_JOB", "(unset)"}};
    for (size_t i = 0; i < array_length(others); i++)
        assert_string_equal(value_of(&process, others[i].name), others[i].seen);
}

static void test_entry_point(void **state)
{
    (void)state;
    static const struct {
        const char *image, *program; /* NULL: refused */
    } rows[] = {
        {"shoal-agent", "shoal-agent"},
        {"registry.example:5000/team/shoal-agent:v1", "shoal-agent"},
        {"shoal-agent@sha256:abc", "shoal-agent"},
        {"shoal-agent-extra", NULL},
        {"shoal", NULL},
        {"shoal-agent/other", NULL},
        {NULL, NULL},
    };
    const char *args[] = {"--help"};
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct container container = {
            .name = "pytorch", .image = rows[i].image, .args = {.items = args, .count = 1}};
        struct local_process process;
        struct error err;
        int result = build(arena, &container, &process, &err);
        if (!rows[i].program) {
            assert_fails(result, &err, ERR_INPUT, "no command: images are not run here");
            continue;
        }
        assert_ok(result, &err);
        assert_string_equal(process.argv[0], rows[i].program);
        assert_string_equal(process.argv[1], "--help");
    }
}

/* The agent has the launchers' names in its image, not on this machine. */
static void test_launchers_of_the_agents_image(void **state)
{
    (void)state;
    static const struct {
        const char *image, *command, *line;
    } rows[] = {
        {"x/shoal-agent:1", "/usr/local/bin/torchrun", "shoal-agent torchrun train.py"},
        {"shoal-agent", "hyperpodrun", "shoal-agent hyperpodrun train.py"},
        {"shoal-agent", "/bin/other", "/bin/other train.py"},
        {"pytorch", "torchrun", "torchrun train.py"},
        {NULL, "torchrun", "torchrun train.py"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        const char *command[] = {rows[i].command, "train.py"};
        struct container container = {
            .name = "pytorch", .image = rows[i].image, .command = {.items = command, .count = 2}};
        struct local_process process;
        struct error err;
        assert_ok(build(arena, &container, &process, &err), &err);
        char line[100] = "";
        for (const char *const *word = process.argv; *word; word++)
            strcat(strcat(line, word == process.argv ? "" : " "), *word);
        assert_string_equal(line, rows[i].line);
    }
}

/* A shell in the agent's image finds the names that are there before those of this machine. */
static void test_path_of_the_agents_image(void **state)
{
    (void)state;
    static const struct {
        const char *image, *path;
    } rows[] = {
        {"x/shoal-agent:1", "/image:/usr/bin:/opt/shoal"},
        {"pytorch", "/usr/bin:/opt/shoal"},
    };
    const char *command[] = {"bash"};
    struct local_site with_image = site;
    with_image.agent_image_dir = "/image";
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct container container = {
            .name = "pytorch", .image = rows[i].image, .command = {.items = command, .count = 1}};
        struct local_process process;
        struct error err;
        assert_ok(local_container_build(&pod, &container, &with_image, "SHOAL_RESTART_COUNT=0",
                                        arena, &process, &err),
                  &err);
        assert_string_equal(value_of(&process, "PATH"), rows[i].path);
    }
}

static void test_what_only_a_cluster_has(void **state)
{
    (void)state;
    static const struct {
        enum env_source source;
        const char *value, *message;
    } rows[] = {
        {ENV_SECRET, "hub/token", "env X comes from secret hub/token, which only a cluster has"},
        {ENV_CONFIG_MAP, "a/b", "env X comes from config map a/b, which only a cluster has"},
        {ENV_FIELD, "metadata.uid", "env X comes from metadata.uid, which only a cluster has"},
        {ENV_RESOURCE, "limits.ephemeral-storage", "env X comes from limits.ephemeral-storage"},
    };
    const char *words[] = {"true"};
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct env_var var = {.name = "X", .value = rows[i].value, .source = rows[i].source};
        struct container container = {.name = "pytorch",
                                      .command = {.items = words, .count = 1},
                                      .env = &var,
                                      .env_count = 1};
        struct local_process process;
        struct error err;
        assert_fails(build(arena, &container, &process, &err), &err, ERR_UNSUPPORTED,
                     rows[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_entry_point),
        cmocka_unit_test(test_launchers_of_the_agents_image),
        cmocka_unit_test(test_path_of_the_agents_image),
        cmocka_unit_test(test_what_only_a_cluster_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
