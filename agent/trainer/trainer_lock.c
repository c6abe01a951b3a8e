/* One run at a time writes into checkpoint.dir. */
#include "agent/checkpoint/directory_lock.h"
#include "agent/trainer/trainer_parts.h"
#include "base/file.h"

#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* A run's successor may start while its predecessor still ends. A server of NFSv4 keeps a lost
 * client's locks for 90 s. A pod has 30 s to end (terminationGracePeriodSeconds): so long waits
 * even a run that does not know whether it is a successor. */
enum { SUCCESSOR_WAIT_MS = 120 * 1000, OTHER_WAIT_MS = 30 * 1000, TRY_EVERY_MS = 100 };

static bool is_predecessor(const struct trainer *t, const struct directory_owner *owner)
{
    return t->place.restarted ||
           (owner->run[0] && t->place.run && strcmp(owner->run, t->place.run) == 0);
}

/* The other ranks wait in a collective meanwhile, and must not give up first. */
static int64_t wait_ms(const struct trainer *t, const struct directory_owner *owner)
{
    int64_t most = (int64_t)(t->config->runtime.timeout_s * 1000 / 2);
    int64_t wait = is_predecessor(t, owner) ? SUCCESSOR_WAIT_MS : OTHER_WAIT_MS;
    return wait < most ? wait : most;
}

static const char *owner_text(const struct trainer *t, const struct directory_owner *owner)
{
    if (!owner->pid)
        return "another process";
    return arena_printf(t->arena, "process %lld on host %s", (long long)owner->pid, owner->host);
}

static int busy(const struct trainer *t, const char *dir, const struct directory_owner *owner,
                int64_t waited_ms, struct error *err)
{
    return error_set(err, is_predecessor(t, owner) ? ERR_TIMEOUT : ERR_EXISTS,
                     "checkpoint.dir (--output_dir, --checkpoint_dir, --save_path) is in use: %s "
                     "writes checkpoints into %s, and did not end within %.3g s; end it, or give "
                     "this run a directory of its own",
                     owner_text(t, owner), dir, (double)waited_ms / 1000);
}

int trainer_lock_dir(struct trainer *t, struct error *err)
{
    auto_free char *dir = file_absolute(t->config->checkpoint.dir);
    struct directory_owner self, owner;
    struct error why;
    directory_owner_self(t->place.run, &self);
    for (int64_t waited_ms = 0;; waited_ms += TRY_EVERY_MS) {
        enum directory_lock_state state =
            directory_lock(dir, &self, flock, &t->dir_lock, &owner, &why);
        if (state == DIRECTORY_LOCKED)
            return 0;
        if (state == DIRECTORY_HAS_NO_LOCK) {
            error_wrap(&why, "nothing keeps a second run from writing into checkpoint.dir");
            t->listener->notice(t->listener->ctx, why.msg);
            return 0;
        }
        int64_t most_ms = wait_ms(t, &owner);
        if (waited_ms >= most_ms)
            return busy(t, dir, &owner, waited_ms, err);
        if (t->listener->stop_asked(t->listener->ctx))
            return error_set(err, ERR_CANCELLED, "stopped as asked, before the first step");
        if (waited_ms == 0)
            t->listener->notice(
                t->listener->ctx,
                arena_printf(t->arena, "%s writes checkpoints into %s: waiting %.3g s for its end",
                             owner_text(t, &owner), dir, (double)most_ms / 1000));
        poll(NULL, 0, TRY_EVERY_MS);
    }
}

void trainer_unlock_dir(struct trainer *t)
{
    if (t->dir_lock >= 0)
        close(t->dir_lock);
    t->dir_lock = -1;
}
