/* The live page's files, as they become part of the programs. */
#include "tests/support.h"

#include "base/mem.h"
#include "base/page.h"

#include <dirent.h>
#include <sys/stat.h>

/* It comes over a port-forward, and lies in the operator's memory. */
static void the_page_is_small(void **state)
{
    (void)state;
    DIR *directory = opendir("base/page");
    const struct dirent *entry;
    size_t bytes = 0, files = 0;
    assert_non_null(directory);
    while ((entry = readdir(directory))) {
        struct stat st;
        auto_free char *path = xasprintf("base/page/%s", entry->d_name);
        if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
            continue;
        bytes += (size_t)st.st_size;
        files++;
    }
    closedir(directory);
    assert_true(files >= 8);
    if (bytes > PAGE_FILES_MAX_BYTES)
        fail_msg("base/page has %zu bytes, at most %d", bytes, PAGE_FILES_MAX_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
