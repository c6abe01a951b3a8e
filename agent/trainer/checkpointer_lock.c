/* One run at a time writes into checkpoint.dir. */
#include "agent/checkpoint/directory_lock.h"
#include "agent/trainer/checkpointer.h"
#include "base/file.h"
#include "base/mem.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

/* A run's successor may start while its predecessor still ends. A server of NFSv4 keeps a lost
 * client's locks for 90 s. A pod has 30 s to end (terminationGracePeriodSeconds): so long waits
 * even a run that does not know whether it is a successor. */
enum { SUCCESSOR_WAIT_MS = 120 * 1000, OTHER_WAIT_MS = 30 * 1000, TRY_EVERY_MS = 100 };

/* The other ranks wait in a collective meanwhile, and must not give up first. */
static int64_t wait_ms(const struct agent_config *config, bool is_predecessor)
{
    int64_t most = (int64_t)(config->runtime.timeout_s * 1000 / 2);
    int64_t wait = is_predecessor ? SUCCESSOR_WAIT_MS : OTHER_WAIT_MS;
    return wait < most ? wait : most;
}

static void name_owner(const struct directory_owner *owner, char *text, size_t bytes)
{
    snprintf(text, bytes, "another process");
    if (owner->pid)
        snprintf(text, bytes, "process %lld on host %s", (long long)owner->pid, owner->host);
}

int checkpointer_lock(struct checkpointer *c, const struct agent_config *config,
                      const struct trainer_listener *listener, const char *run, bool is_restart,
                      struct error *err)
{
    auto_free char *dir = file_absolute(config->checkpoint.dir);
    struct directory_owner self, owner;
    struct error why;
    char name[sizeof owner.host + 64];
    directory_owner_self(run, &self);
    for (int64_t waited_ms = 0;; waited_ms += TRY_EVERY_MS) {
        enum directory_lock_state state =
            directory_lock(dir, &self, flock, &c->dir_lock, &owner, &why);
        if (state == DIRECTORY_LOCKED)
            return 0;
        if (state == DIRECTORY_HAS_NO_LOCK) {
            error_wrap(&why, "nothing keeps a second run from writing into checkpoint.dir");
            listener->notice(listener->ctx, why.msg);
            return 0;
        }
        name_owner(&owner, name, sizeof name);
        /* What ran before a restart may still write its last checkpoint: it ends soon, another run
         * does not. */
        bool is_predecessor = is_restart || (self.run[0] && strcmp(owner.run, self.run) == 0);
        int64_t most_ms = wait_ms(config, is_predecessor);
        if (waited_ms >= most_ms)
            return error_set(err, is_predecessor ? ERR_TIMEOUT : ERR_EXISTS,
                             "checkpoint.dir (--output_dir, --checkpoint_dir, --save_path) is in "
                             "use: %s writes checkpoints into %s, and did not end within %.3g s; "
                             "end it, or give this run a directory of its own",
                             name, dir, (double)waited_ms / 1000);
        if (listener->stop_requested(listener->ctx))
            return error_set(err, ERR_CANCELLED, "stopped as asked, before the first step");
        if (waited_ms == 0) {
            auto_free char *notice =
                xasprintf("%s writes checkpoints into %s: waiting %.3g s for its end", name, dir,
                          (double)most_ms / 1000);
            listener->notice(listener->ctx, notice);
        }
        poll(NULL, 0, TRY_EVERY_MS);
    }
}
