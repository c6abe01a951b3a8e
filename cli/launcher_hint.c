#include "cli/launcher_hint.h"

#include <string.h>
#include <unistd.h>

#include "base/contract.h"
#include "base/mem.h"
#include "operator/job/names.h"

/* Whether the text of a shell has it as a word, behind whatever path. */
static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) {
        bool begins = at == text || strchr(" \t\n;&|(/'\"", at[-1]);
        bool ends = !at[length] || strchr(" \t\n;&|)'\"", at[length]);
        if (begins && ends)
            return true;
    }
    return false;
}

static bool calls(const struct container *c, const char *launcher)
{
    for (size_t i = 0; i < c->command.count; i++)
        if (has_word(c->command.items[i], launcher))
            return true;
    /* Behind a shell's -c only: words of other programs are their own affair. */
    for (size_t i = 0; i < c->args.count && c->command.count > 0; i++)
        if (strchr(c->args.items[i], ' ') && has_word(c->args.items[i], launcher))
            return true;
    return false;
}

static bool is_on(const char *path, const char *program)
{
    auto_free char *rest = xstrdup(path ? path : "");
    char *next = NULL;
    for (char *dir = strtok_r(rest, ":", &next); dir; dir = strtok_r(NULL, ":", &next)) {
        auto_free char *file = xasprintf("%s/%s", dir, program);
        if (access(file, X_OK) == 0)
            return true;
    }
    return false;
}

void launcher_hint(const struct job *job, const char *path, struct str *out)
{
    static const char *const launchers[] = {AGENT_LAUNCHERS};
    for (int type = 0; type < REPLICA_TYPES; type++) {
        const struct pod_template *t = &job->replicas[type].template_;
        for (size_t i = 0; job->replicas[type].present && i < t->container_count; i++)
            for (size_t k = 0; k < array_length(launchers); k++) {
                const struct container *c = &t->containers[i];
                if (names_image_is(c->image, AGENT_PROGRAM) || !calls(c, launchers[k]) ||
                    is_on(path, launchers[k]))
                    continue;
                str_printf(out,
                           "job %s: container %s calls %s, which is not on the PATH: images are "
                           "not run here, and only one named " AGENT_PROGRAM
                           " brings it: name such an image in place of %s, or install it",
                           job->name, c->name, launchers[k], c->image ? c->image : "none");
                return;
            }
    }
}
