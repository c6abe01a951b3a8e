/* Finding a shared library: links to the math library, under a name that no machine has, lie where
 * NVIDIA's libraries do. */
#include "base/contract.h"
#include "base/library.h"
#include "base/mem.h"
#include "tests/support.h"

#include <dlfcn.h>
#include <link.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writes `path` with all its folders. */
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
}

/* The file of the math library, under the name the loader gave it. */
static const char *real_library(void)
{
    struct link_map *map;
    void *library = dlopen("libm.so.6", RTLD_NOW);
    assert_non_null(library);
    assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
    return map->l_name;
}

static const char *const absent[] = {"libshoal-absent.so.2", "libshoal-absent.so.1", NULL};

struct place {
    const char *name, *variable, *value, *file; /* value and file: below the test's folder */
};
static const struct place places[] = {
    {"our own variable", ENV_LIBRARY_PATH, "ours", "ours/libshoal-absent.so.1"},
    {"the newest name", ENV_LIBRARY_PATH, "ours", "ours/libshoal-absent.so.2"},
    {"CUDA's folder", "CUDA_HOME", "cuda", "cuda/lib64/libshoal-absent.so.2"},
    {"CUDA's folder, other name", "CUDA_PATH", "cuda", "cuda/lib64/libshoal-absent.so.2"},
    {"CUPTI's folder in it", "CUDA_HOME", "cuda11",
     "cuda11/extras/CUPTI/lib64/libshoal-absent.so.1"},
    {"a virtual environment", "VIRTUAL_ENV", "venv",
     "venv/lib/python3.99/site-packages/nvidia/cublas/lib/libshoal-absent.so.1"},
    {"conda", "CONDA_PREFIX", "conda",
     "conda/lib/python3.11/site-packages/nvidia/cu13/lib/libshoal-absent.so.2"},
    {"packages of a user", "HOME", "home",
     "home/.local/lib/python3.12/site-packages/nvidia/nccl/lib/libshoal-absent.so.2"},
    {"a Python of PATH", "PATH", "some/bin",
     "some/lib/python3.9/dist-packages/nvidia/cudnn/lib/libshoal-absent.so.2"},
};

static void test_places(void **state)
{
    char path[512], value[512];
    for (size_t i = 0; i < array_length(places); i++) {
        const struct place *place = &places[i];
        const char *found = getenv(place->variable);
        char *before = found ? strdup(found) : NULL;
        struct error err;
        void *library = NULL;
        double (*function)(double) = NULL;
        static const struct library_symbol symbols[] = {{"cos", 0, false}, {NULL, 0, false}};
        snprintf(path, sizeof path, "%s/%zu/%s", (char *)*state, i, place->file);
        snprintf(value, sizeof value, "/nowhere::%s/%zu/%s", (char *)*state, i, place->value);
        make_folders(path);
        assert_int_equal(symlink(real_library(), path), 0);
        snprintf(path, sizeof path, "%s/%zu/some/bin/python3", (char *)*state, i);
        make_folders(path);
        fclose(fopen(path, "w"));
        bool list = !strcmp(place->variable, "PATH") || !strcmp(place->variable, ENV_LIBRARY_PATH);
        setenv(place->variable, list ? value : strchr(value + 1, ':') + 2, 1);
        print_message("%s\n", place->name);
        assert_ok(library_open(absent, &library, &err), &err);
        assert_ok(library_symbols(library, symbols, &function, &err), &err);
        assert_true(function(0) == 1);
        if (before)
            setenv(place->variable, before, 1);
        else
            unsetenv(place->variable);
        free(before);
    }
}

/* What is loaded wins, whatever lies in the folders. */
static void test_loaded_wins(void **state)
{
    static const char *const names[] = {"libshoal-absent.so.9", "libm.so.6", NULL};
    char path[512];
    void *library = NULL;
    struct error err;
    snprintf(path, sizeof path, "%s/loaded/libshoal-absent.so.9", (char *)*state);
    make_folders(path);
    fclose(fopen(path, "w")); /* no library at all */
    *strrchr(path, '/') = 0;
    setenv(ENV_LIBRARY_PATH, path, 1);
    assert_ok(library_open(names, &library, &err), &err);
    assert_ptr_equal(library, dlopen("libm.so.6", RTLD_NOW));
    assert_fails(library_open(absent, &library, &err), &err, ERR_NOT_FOUND,
                 "libshoal-absent.so.2 is not on this machine");
    static const char *const broken[] = {"libshoal-absent.so.9", NULL};
    assert_fails(library_open(broken, &library, &err), &err, ERR_INPUT,
                 "libshoal-absent.so.9: file too short");
    unsetenv(ENV_LIBRARY_PATH);
}

/* A library of its own in `folder`: a link to one that is loaded would be that one. */
static void copy_library(const char *folder, const char *name)
{
    char path[512], block[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *from = fopen(real_library(), "r"), *to = fopen(path, "w");
    assert_true(from && to);
    for (size_t n; (n = fread(block, 1, sizeof block, from)) > 0;)
        assert_int_equal(fwrite(block, 1, n, to), n);
    fclose(from);
    fclose(to);
}

static void test_parts(void **state)
{
    static const char *const names[] = {"libshoal-whole.so.1", NULL};
    static const struct {
        const char *part, *why; /* NULL: it is loaded */
    } rows[] = {
        {"libshoal-part.so.1", NULL},
        {"libm.so.6", NULL}, /* where the loader looks */
        {"libshoal-short.so.1", "libshoal-whole.so.1 is installed by half: "},
        {"libshoal-short.so.1", "libshoal-short.so.1: file too short"},
        {"libshoal-absent.so.1", "libshoal-absent.so.1: cannot open shared object file"},
    };
    const char *folder = *state;
    char path[512];
    void *library = NULL;
    struct error err;
    copy_library(folder, names[0]);
    copy_library(folder, rows[0].part);
    snprintf(path, sizeof path, "%s/libshoal-short.so.1", folder);
    fclose(fopen(path, "w"));
    setenv(ENV_LIBRARY_PATH, folder, 1);
    assert_ok(library_open(names, &library, &err), &err);
    unsetenv(ENV_LIBRARY_PATH);
    assert_non_null(strstr(library_file(library), names[0]));
    for (size_t i = 0; i < array_length(rows); i++) {
        int result = library_open_part(library, rows[i].part, &err);
        if (rows[i].why)
            assert_fails(result, &err, ERR_INPUT, rows[i].why);
        else
            assert_ok(result, &err);
    }
}

static void test_symbols(void **state)
{
    (void)state;
    static const char *const names[] = {"libm.so.6", NULL};
    struct {
        void *first, *second;
    } functions = {&functions, &functions};
    static const struct library_symbol optional[] = {
        {"no_such_thing", sizeof(void *), true}, {"sin", 0, false}, {NULL, 0, false}};
    static const struct library_symbol required[] = {{"no_such_thing", 0, false}, {NULL, 0, false}};
    void *library = NULL;
    struct error err;
    assert_ok(library_open(names, &library, &err), &err);
    assert_ok(library_symbols(library, optional, &functions, &err), &err);
    assert_null(functions.second);
    assert_non_null(functions.first);
    assert_fails(library_symbols(library, required, &functions, &err), &err, ERR_UNSUPPORTED,
                 "has no no_such_thing: it is too old");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_places, support_enter_dir, support_leave_dir),
        cmocka_unit_test_setup_teardown(test_loaded_wins, support_enter_dir, support_leave_dir),
        cmocka_unit_test_setup_teardown(test_parts, support_enter_dir, support_leave_dir),
        cmocka_unit_test(test_symbols),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
