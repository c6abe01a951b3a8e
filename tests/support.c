#include "tests/support.h"

#include "base/mem.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void support_pause(int64_t waited_ms, const char *condition, const char *file, int line)
{
    if (waited_ms < SUPPORT_PATIENCE_MS) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        return;
    }
    print_error("waited in vain: %s\n", condition);
    _fail(file, line);
}

int64_t support_longer_ms(int64_t ms)
{
    enum { LONGEST_MS = 5 * 60 * 1000 };
    if (4 * ms > LONGEST_MS)
        fail_msg("not even with %lld ms", (long long)ms);
    return 4 * ms;
}

const char *support_error_name(enum error_code code)
{
    static const char *const names[] = {
        [ERR_NONE] = "none",           [ERR_INPUT] = "input",
        [ERR_CONFIG] = "config",       [ERR_IO] = "io",
        [ERR_NO_SPACE] = "nospace",    [ERR_NOT_FOUND] = "notfound",
        [ERR_EXISTS] = "exists",       [ERR_CONFLICT] = "conflict",
        [ERR_GONE] = "gone",           [ERR_FORBIDDEN] = "forbidden",
        [ERR_LIMIT] = "limit",         [ERR_TIMEOUT] = "timeout",
        [ERR_PEER] = "peer",           [ERR_SHAPE] = "shape",
        [ERR_MEMORY] = "memory",       [ERR_UNSUPPORTED] = "unsupported",
        [ERR_CANCELLED] = "cancelled", [ERR_DIVERGED] = "diverged",
        [ERR_DEVICE] = "device",
    };
    if ((unsigned)code >= sizeof names / sizeof names[0])
        return "unknown";
    return names[code];
}

void support_assert_ok(int result, const struct error *err, const char *file, int line)
{
    if (result == 0)
        return;
    print_error("error %s: %s\n", support_error_name(err->code), err->msg);
    _fail(file, line);
}

bool support_is_error(int result, const struct error *err, enum error_code code, const char *part)
{
    if (result < 0 && err->code == code && strstr(err->msg, part))
        return true;
    if (result >= 0)
        print_error("succeeded; expected error %s with \"%s\"\n", support_error_name(code), part);
    else
        print_error("error %s: \"%s\"; expected %s with \"%s\"\n", support_error_name(err->code),
                    err->msg, support_error_name(code), part);
    return false;
}

void support_assert_fails(int result, const struct error *err, enum error_code code,
                          const char *part, const char *file, int line)
{
    if (!support_is_error(result, err, code, part))
        _fail(file, line);
}

void support_assert_hex(const void *bytes, size_t count, const char *hex, const char *file,
                        int line)
{
    char *found = xcalloc(1, 2 * count + 1);
    for (size_t i = 0; i < count; i++)
        sprintf(found + 2 * i, "%02x", ((const unsigned char *)bytes)[i]);
    bool same = strcmp(found, hex) == 0;
    if (!same)
        print_error("%s\nis not\n%s\n", found, hex);
    free(found);
    if (!same)
        _fail(file, line);
}

char *support_temp_dir(void)
{
    const char *base = getenv("TMPDIR");
    char *path = xasprintf("%s/shoal-test-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(path)) {
        print_error("mkdtemp %s failed\n", path);
        fail();
    }
    return path;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    (void)st, (void)type, (void)walk;
    return remove(path);
}

void support_remove_tree(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

int support_count_entries(const char *path)
{
    DIR *d = opendir(path);
    assert_non_null(d);
    int count = 0;
    for (struct dirent *e; (e = readdir(d));)
        count += e->d_name[0] != '.';
    closedir(d);
    return count;
}

int support_enter_dir(void **state)
{
    *state = support_temp_dir();
    return 0;
}

int support_leave_dir(void **state)
{
    support_remove_tree(*state);
    free(*state);
    return 0;
}

const char *support_device(void)
{
    const char *name = getenv("SHOAL_TEST_DEVICE");
    return name ? name : "cpu";
}

bool support_is_emulated(void)
{
    const char *library = getenv("SHOAL_CUDA_LIBRARY");
    return strcmp(support_device(), "cuda") == 0 && library && strstr(library, "/emulation/");
}

static int stderr_before;
static FILE *told;

void support_stderr_begin(void)
{
    told = tmpfile();
    assert_non_null(told);
    stderr_before = dup(STDERR_FILENO);
    assert_true(stderr_before >= 0 && dup2(fileno(told), STDERR_FILENO) >= 0);
}

void support_stderr_end(char *text, size_t bytes)
{
    dup2(stderr_before, STDERR_FILENO);
    close(stderr_before);
    rewind(told);
    text[fread(text, 1, bytes - 1, told)] = '\0';
    fclose(told);
}
