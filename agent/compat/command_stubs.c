#include "agent/compat/command_stubs.h"

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

/* "python -u -m pip ...": the module's name; NULL: it is not called so. */
static const char *module_of(char *const *argv)
{
    for (argv++; *argv && (*argv)[0] == '-'; argv++)
        if (strcmp(*argv, "-m") == 0)
            return argv[1];
    return NULL;
}

bool command_stub(char *const *argv, struct str *out, int *ret_exit_code)
{
    if (argv[0] && strcmp(str_after_last(argv[0], '/'), AGENT_PROGRAM) == 0)
        argv++; /* "shoal-agent python -m pip ..." */
    if (!argv[0])
        return false;
    const char *name = str_after_last(argv[0], '/');
    const char *module = str_starts_with(name, "python") ? module_of(argv) : NULL;
    if (module)
        name = module;
    for (size_t i = 0; i < array_length(rows); i++) {
        if (strcmp(rows[i].name, name) != 0)
            continue;
        /* Only what fetches is known to be needless: another subcommand must not seem to have
         * succeeded. */
        bool is_known = has_word(argv, rows[i].verb);
        *ret_exit_code = is_known ? EXIT_DONE : EXIT_FAILED;
        if (is_known)
            str_printf(out,
                       "%s: nothing is fetched: this is " AGENT_PROGRAM
                       ", which stands in for the scripts that torchrun, accelerate and python "
                       "name\n",
                       name);
        else
            str_printf(out,
                       "%s: this is " AGENT_PROGRAM " under that name: it takes '%s %s', which "
                       "fetches nothing, so that manifests run as they are; run the real %s where "
                       "that is, and leave the line out here\n",
                       name, name, rows[i].verb, name);
        return true;
    }
    return false;
}
