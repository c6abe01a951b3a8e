#include "agent/config/stand_in.h"

#include "base/contract.h"
#include "base/mem.h"

#include <string.h>

static const struct {
    const char *name, *verb;
} rows[] = {{"git", "clone"}, {"pip", "install"}, {"pip3", "install"}};

static bool has_word(char *const *argv, const char *word)
{
    for (; *argv; argv++)
        if (strcmp(*argv, word) == 0)
            return true;
    return false;
}

bool stand_in(char *const *argv, struct str *out, int *ret_exit_code)
{
    if (!argv[0])
        return false;
    const char *name = str_after_last(argv[0], '/');
    if (str_starts_with(name, "python") && argv[1] && strcmp(argv[1], "-m") == 0 && argv[2])
        name = argv[2];
    for (size_t i = 0; i < array_length(rows); i++) {
        if (strcmp(rows[i].name, name) != 0)
            continue;
        bool is_known = has_word(argv, rows[i].verb);
        *ret_exit_code = is_known ? EXIT_DONE : EXIT_FAILED;
        if (is_known)
            str_printf(out,
                       "%s: nothing is fetched: this is " AGENT_PROGRAM
                       ", which stands in for the scripts that torchrun, accelerate and python "
                       "name\n",
                       name);
        else
            str_printf(out, "%s: this is " AGENT_PROGRAM ", which only takes %s %s\n", name, name,
                       rows[i].verb);
        return true;
    }
    return false;
}
