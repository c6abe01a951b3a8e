#include "agent/trainer/trainer_saved_slots.h"

#include "agent/checkpoint/checkpoint.h"
#include "agent/trainer/trainer_internal.h"
#include "base/mem.h"

#include <string.h>

/* The newest checkpoint of `dir`, by `run` (NULL: anyone). The caller frees it; NULL: there is
 * none. */
static char *latest(const char *dir, const char *run)
{
    struct checkpoint_found found;
    struct error ignored;
    return checkpoint_find_latest(dir, run, NULL, NULL, &found, &ignored) == 0 ? found.path : NULL;
}

/* What trainer_resume() will probably go on from: the slots must be known before the data and the
 * weights are cut, and the place in both is known after. The caller frees it. */
static char *likely_checkpoint(const struct agent_config *c, const char *run, bool restarted)
{
    const char *asked = c->checkpoint.resume;
    if (strcmp(asked, "true") == 0 || strcmp(asked, "latest") == 0)
        return latest(c->checkpoint.dir, NULL);
    if (asked[0])
        return trainer_is_checkpoint(asked) ? xstrdup(asked) : latest(asked, NULL);
    if (!c->checkpoint.auto_resume || !c->checkpoint.dir[0] || (!run[0] && !restarted))
        return NULL;
    return latest(c->checkpoint.dir, run[0] ? run : NULL);
}

int64_t trainer_saved_slots(const struct agent_config *config, const char *run, bool restarted)
{
    auto_free char *path = likely_checkpoint(config, run, restarted);
    struct checkpoint *checkpoint;
    struct error ignored;
    if (!path || checkpoint_open(path, &checkpoint, &ignored))
        return 0;
    int64_t slots = checkpoint_get_state(checkpoint)->reduction_slots;
    checkpoint_close(checkpoint);
    return slots;
}
