#include "tests/support.h"

#include "agent/config/model_path.h"
#include "base/mem.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The environment: a "NAME=value" each line. A value is valid until the next call but one. */
static const char *lookup(void *ctx, const char *name)
{
    static char values[2][200];
    static int next;
    size_t length = strlen(name);
    for (const char *line = ctx; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) != 0 || line[length] != '=')
            continue;
        next = 1 - next;
        snprintf(values[next], sizeof values[next], "%.*s", (int)strcspn(line + length + 1, "\n"),
                 line + length + 1);
        return values[next];
    }
    return NULL;
}

static void make_directories(const char *path)
{
    char text[400];
    snprintf(text, sizeof text, "%s/", path);
    for (char *slash = strchr(text + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(text, 0700);
        *slash = '/';
    }
}

static void write_text(const char *path, const char *text)
{
    auto_fclose FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
}

/* A temporary directory is the current one while a test runs. */
static int home = -1;

static int enter(void **state)
{
    home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return support_enter_dir(state) || home < 0 || chdir(*state) < 0;
}

static int leave(void **state)
{
    int result = fchdir(home);
    close(home);
    return support_leave_dir(state) || result < 0;
}

/* In the current directory: caches as the hub makes them. */
static void make_caches(void)
{
    make_directories("hub/models--org--one/snapshots/abc123");
    make_directories("hub/models--org--one/refs");
    write_text("hub/models--org--one/refs/main", "abc123\n");
    make_directories("hub/models--gpt2/snapshots/main");
    make_directories("hub/models--org--bad/refs");
    write_text("hub/models--org--bad/refs/main", "../../..");
    make_directories("hub/models--org--gone/refs");
    write_text("hub/models--org--gone/refs/main", "deadbeef");
    make_directories("home/.cache/huggingface/hub/models--org--two/snapshots/main");
    make_directories("org/here");
    make_directories("hub/datasets--org--texts/snapshots/main");
    make_directories("hub/datasets--org--here/snapshots/main");
    make_directories("hub/datasets--words/snapshots/main");
    make_directories("hub/datasets--here/snapshots/main");
    make_directories("data/here");
    make_directories("out/checkpoint-90");
    write_text("out/checkpoint-90/config.json", "{}");
    make_directories("out/checkpoint-100");
    write_text("out/checkpoint-100/config.json", "{}");
    make_directories("out/checkpoint-2000");
    make_directories("out/checkpoint-x");
}

static void ids_are_found_where_the_hub_keeps_them(void **state)
{
    (void)state;
    static const struct {
        const char *name, *environment, *path;
    } rows[] = {
        {"org/here", "", "org/here"},
        {"./org/here", "", "./org/here"},
        {"org/one", "HF_HUB_CACHE=hub", "hub/models--org--one/snapshots/abc123"},
        {"org/one", "HF_HOME=.", "./hub/models--org--one/snapshots/abc123"},
        {"org/one", "TRANSFORMERS_CACHE=hub", "hub/models--org--one/snapshots/abc123"},
        {"gpt2", "HF_HUB_CACHE=hub", "hub/models--gpt2/snapshots/main"},
        {"org/two", "HOME=home", "home/.cache/huggingface/hub/models--org--two/snapshots/main"},
        {"org/one", "HUGGINGFACE_HUB_CACHE=hub", "hub/models--org--one/snapshots/abc123"},
        {"org/one", "HF_HUB_CACHE=~/hub\nHOME=.", "./hub/models--org--one/snapshots/abc123"},
        {"org/two", "XDG_CACHE_HOME=home/.cache",
         "home/.cache/huggingface/hub/models--org--two/snapshots/main"},
    };
    make_caches();
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        const char *path = NULL;
        struct error err;
        assert_ok(resolve_model_path(rows[i].name, lookup, (void *)(uintptr_t)rows[i].environment,
                                     arena, &path, &err),
                  &err);
        assert_string_equal(path, rows[i].path);
    }
}

static void what_is_nowhere_is_told_with_the_places(void **state)
{
    (void)state;
    static const struct {
        const char *name, *environment, *message;
    } rows[] = {
        {"org/three", "", "there is no 'org/three' here; if the Hub has it: hf download org/three"},
        {"org/three", "HF_HUB_CACHE=hub", "there is no 'org/three' here, nor in the cache hub"},
        {"org/three", "HF_HOME=/x", "nor in the cache /x/hub; if the Hub has it: hf download org"},
        {"org/bad", "HF_HUB_CACHE=hub", "there is no 'org/bad'"},
        {"org/gone", "HF_HUB_CACHE=hub", "there is no 'org/gone'"},
        {"../hub", "HF_HUB_CACHE=hub/refs", "there is no '../hub' here"},
        {"a/b/c", "HF_HUB_CACHE=hub", "there is no 'a/b/c' here"},
        {"out", "", "out has no config.json, but out/checkpoint-100 has: name that"},
    };
    make_caches();
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        const char *path = NULL;
        struct error err;
        assert_fails(resolve_model_path(rows[i].name, lookup,
                                        (void *)(uintptr_t)rows[i].environment, arena, &path, &err),
                     &err, ERR_NOT_FOUND, rows[i].message);
    }
}

static int resolve(struct arena *arena, int count, const char *const *words, struct config *config,
                   struct error *err)
{
    void *environment = (void *)(uintptr_t) "HF_HUB_CACHE=hub";
    assert_ok(config_parse(count, words, lookup, environment, arena, config, err), err);
    return resolve_config_paths(config, lookup, environment, arena, err);
}

static void assert_path(const char *path, const char *dir, const char *below)
{
    char expected[PATH_MAX + 256];
    snprintf(expected, sizeof expected, "%s/%s", dir, below);
    assert_string_equal(path, expected);
}

static void a_configuration_gets_its_paths(void **state)
{
    (void)state;
    static const char *const known[] = {"--preset=fabric", "--model_name=org/one",
                                        "--tokenizer=gpt2"};
    static const char *const unknown[] = {"--model_name=org/three"};
    static const char *const preset[] = {"--preset=hyperpod"};
    static const char *const tokenizer[] = {"--preset=hyperpod", "--tokenizer=org/three"};
    static const char *const relative[] = {"--model_type=llama", "--tokenizer=././/org/here"};
    char here[PATH_MAX];
    auto_arena struct arena *arena = arena_open();
    struct config config;
    struct error err;
    make_caches();
    assert_ok(resolve(arena, 3, known, &config, &err), &err);
    assert_non_null(getcwd(here, sizeof here));
    assert_path(config.value.model.name_or_path, here, "hub/models--org--one/snapshots/abc123");
    assert_path(config.value.data.tokenizer, here, "hub/models--gpt2/snapshots/main");
    assert_string_equal(config.value.checkpoint.prefix, "one");
    assert_fails(resolve(arena, 1, unknown, &config, &err), &err, ERR_NOT_FOUND,
                 "model.name_or_path: there is no 'org/three'");
    assert_ok(resolve(arena, 2, relative, &config, &err), &err);
    assert_path(config.value.data.tokenizer, here, "org/here");
    assert_ok(resolve(arena, 1, preset, &config, &err), &err);
    assert_string_equal(config.value.data.tokenizer, "");
    assert_non_null(strstr(config.no_tokenizer, "there is no 'EleutherAI/gpt-neox-20b' here"));
    assert_fails(resolve(arena, 2, tokenizer, &config, &err), &err, ERR_NOT_FOUND,
                 "data.tokenizer: there is no 'org/three'");
}

static void a_data_set_may_be_in_the_hubs_cache(void **state)
{
    (void)state;
    static const struct {
        const char *dataset, *path;
    } rows[] = {
        {"--dataset=org/texts", "hub/datasets--org--texts/snapshots/main"},
        {"--dataset=org/here", "org/here"},
        {"--dataset=other/here", "other/here"}, /* below the root, without what is before the / */
        {"--dataset=org/none", "org/none"},
        {"--dataset=texts", "texts"},
        {"--dataset=words", "hub/datasets--words/snapshots/main"},
        {"--dataset=here", "here"}, /* below the root */
        {"--dataset=", ""},
        {"--dataset=/org/texts", "/org/texts"},
    };
    make_caches();
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        const char *words[] = {"--preset=gpt2", "--data.root=data", rows[i].dataset};
        struct config config;
        struct error err;
        assert_ok(resolve(arena, 3, words, &config, &err), &err);
        assert_string_equal(config.value.data.source.dataset, rows[i].path);
    }
}

/* Who names a subdirectory of what has none is told; a preset asks for it where there is one. */
static void a_subdirectory_of_a_file_is_told_as_ignored(void **state)
{
    (void)state;
    static const struct {
        const char *dataset, *subdirectory;
        bool is_told;
    } rows[] = {
        {"--dataset=data/rows.jsonl", "--dataset_config_name=en", true},
        {"--dataset=rows.jsonl", "--dataset_config_name=en", true}, /* below the root */
        {"--dataset=org/rows.jsonl", "--dataset_config_name=en", true},
        {"--dataset=data/*.jsonl", "--dataset_config_name=en", true},
        {"--dataset=data/tokens", "--dataset_config_name=en", true},
        {"--dataset=data/rows.jsonl", "--preset=hyperpod", false},
        {"--dataset=data/rows.jsonl", "--dataset_config_name=", false},
        {"--dataset=here", "--dataset_config_name=en", false},
        {"--dataset=org/texts", "--dataset_config_name=en", false},
        {"--dataset=nowhere", "--dataset_config_name=en", false},
        {"--dataset=", "--dataset_config_name=en", false},
    };
    make_caches();
    write_text("data/rows.jsonl", "");
    write_text("data/tokens.idx", "");
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        const char *words[] = {"--preset=gpt2", "--data.root=data", rows[i].dataset,
                               rows[i].subdirectory};
        struct config config;
        struct error err;
        assert_ok(resolve(arena, 4, words, &config, &err), &err);
        assert_int_equal(strstr(config.warning, "data.dataset_config_name is ignored: ") != NULL,
                         rows[i].is_told);
    }
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, enter, leave)
    const struct CMUnitTest tests[] = {
        IN_DIR(ids_are_found_where_the_hub_keeps_them),
        IN_DIR(what_is_nowhere_is_told_with_the_places),
        IN_DIR(a_configuration_gets_its_paths),
        IN_DIR(a_data_set_may_be_in_the_hubs_cache),
        IN_DIR(a_subdirectory_of_a_file_is_told_as_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
