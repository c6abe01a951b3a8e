#include "tests/support.h"

#include "agent/compat/command_stubs.h"
#include "base/mem.h"

#include <string.h>

enum { MAX_WORDS = 16 };

static void commands_before_the_script_fetch_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int exit_code; /* -1: it is none of them */
        const char *text;
    } rows[] = {
        {"git clone https://github.com/gnosia93/training-on-eks /workspace/code", 0,
         "git: nothing is fetched"},
        {"/usr/bin/git -c a=b clone x", 0, "git: nothing is fetched"},
        {"pip install -r requirements.txt", 0, "pip: nothing is fetched"},
        {"pip3 -q install accelerate", 0, "pip3: nothing is fetched"},
        {"python3 -m pip install x", 0, "pip: nothing is fetched"},
        {"python3 -u -m pip install x", 0, "pip: nothing is fetched"},
        {"shoal-agent python -m pip install x", 0, "pip: nothing is fetched"},
        {"/usr/bin/shoal-agent pip install x", 0, "pip: nothing is fetched"},
        {"git log", 1,
         "git: this is shoal-agent under that name: it takes 'git clone', which fetches nothing, "
         "so that manifests run as they are; run the real git where that is, and leave the line "
         "out here\n"},
        {"pip", 1, "pip: this is shoal-agent under that name: it takes 'pip install'"},
        {"python3 -m pip list", 1, "pip: this is shoal-agent under that name: it takes"},
        {"python3 train.py -m pip install", -1, ""},
        {"shoal-agent", -1, ""},
        {"shoal-agent clone", -1, ""},
        {"python3 -m http.server", -1, ""},
        {"python3", -1, ""},
        {"", -1, ""},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        char *words[MAX_WORDS] = {NULL}, *rest = NULL;
        int count = 0, exit_code = -1;
        for (char *w = strtok_r(arena_strdup(arena, rows[i].line), " ", &rest); w;
             w = strtok_r(NULL, " ", &rest))
            words[count++] = w;
        auto_str struct str text;
        str_init(&text, 1024);
        assert_int_equal(command_stub(words, &text, &exit_code), rows[i].exit_code >= 0);
        assert_int_equal(exit_code, rows[i].exit_code);
        assert_memory_equal(str_text(&text), rows[i].text, strlen(rows[i].text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(commands_before_the_script_fetch_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
