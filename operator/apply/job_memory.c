#include "operator/apply/job_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "operator/job/job_status.h"

static void free_memory(struct job_memory *memory)
{
    expectations_close(memory->expect);
    job_memory_drop_unconfirmed(memory);
    arena_close(memory->kept_arena);
    arena_close(memory->restored_arena);
    free(memory->key);
    free(memory->uid);
    free(memory->refused);
    free(memory);
}

struct job_memory *job_memory_find(const struct table *memories, const char *key, const char *uid)
{
    struct job_memory *memory = (struct job_memory *)table_find(memories, key);
    return memory && strcmp(memory->uid, uid) == 0 ? memory : NULL;
}

struct job_memory *job_memory_take(struct table *memories, const char *key, const char *uid)
{
    struct job_memory *memory = job_memory_find(memories, key, uid);
    if (memory)
        return memory;
    job_memory_forget(memories, key);
    memory = xcalloc(1, sizeof *memory);
    memory->key = xstrdup(key);
    memory->uid = xstrdup(uid);
    memory->entry.key = memory->key;
    table_add(memories, &memory->entry);
    return memory;
}

void job_memory_forget(struct table *memories, const char *key)
{
    struct job_memory *memory = (struct job_memory *)table_find(memories, key);
    if (!memory)
        return;
    table_remove(memories, &memory->entry);
    free_memory(memory);
}

static void free_entry(void *context, struct table_entry *entry)
{
    (void)context;
    free_memory((struct job_memory *)entry);
}

void job_memory_free_all(struct table *memories)
{
    table_each(memories, free_entry, NULL);
    table_free(memories);
}

void job_memory_refuse(struct job_memory *memory, const char *text)
{
    free(memory->refused);
    memory->refused = xstrdup(text);
}

bool job_memory_clear_refusal(struct job_memory *memory)
{
    bool refused = memory->refused != NULL;
    free(memory->refused);
    memory->refused = NULL;
    return refused;
}

void job_memory_add_unconfirmed(struct job_memory *memory, const struct job_status *before,
                                const struct job_status *tried)
{
    /* Each failed try may be the one that reached the server, so all tries over the same status are
     * kept. There is room for the first ones and the newest. */
    const struct unconfirmed *old = memory->unconfirmed;
    struct arena *arena = arena_open();
    struct unconfirmed *unconfirmed = arena_new(arena, struct unconfirmed);
    unconfirmed->arena = arena;
    unconfirmed->before = job_status_copy(before, arena);
    if (old && job_status_equal(&old->before, before))
        while (unconfirmed->count < old->count && unconfirmed->count < UNCONFIRMED_MAX - 1) {
            unconfirmed->tried[unconfirmed->count] =
                job_status_copy(&old->tried[unconfirmed->count], arena);
            unconfirmed->count++;
        }
    unconfirmed->tried[unconfirmed->count++] = job_status_copy(tried, arena);
    job_memory_drop_unconfirmed(memory);
    memory->unconfirmed = unconfirmed;
}

void job_memory_drop_unconfirmed(struct job_memory *memory)
{
    if (memory->unconfirmed)
        arena_close(memory->unconfirmed->arena);
    memory->unconfirmed = NULL;
}

/* Whether this is what is seen of the tried status. Of its history no more is seen than what was
 * recalled, where the API server does not keep it. */
static bool is_seen(const struct job_memory *memory, const struct job_status *tried,
                    const struct job_status *seen)
{
    struct job_status shown = *tried;
    if (memory->kept)
        shown.history = seen->history;
    return job_status_equal(&shown, seen);
}

bool job_memory_confirm_write(struct job_memory *memory, const struct job_status *seen,
                              struct arena *arena, struct job_status *ret_before)
{
    const struct unconfirmed *unconfirmed = memory->unconfirmed;
    if (!unconfirmed || job_status_equal(&unconfirmed->before, seen))
        return false; /* as before: it may be done yet */
    const struct job_status *done = NULL;
    for (int i = 0; i < unconfirmed->count; i++)
        if (is_seen(memory, &unconfirmed->tried[i], seen))
            done = &unconfirmed->tried[i];
    if (done)
        *ret_before = job_status_copy(&unconfirmed->before, arena);
    /* The cache shows that status without its history, which was pruned; ours goes with it from now
     * on. */
    if (done && memory->kept)
        job_memory_set_history_kept(memory, done, false);
    job_memory_drop_unconfirmed(memory);
    return done != NULL;
}

static void prune_history(void *context, struct table_entry *entry)
{
    (void)context;
    struct job_memory *memory = (struct job_memory *)entry;
    arena_close(memory->kept_arena);
    memory->kept_arena = NULL;
    memory->kept = NULL;
}

void job_memory_prune_histories(struct table *memories)
{
    table_each(memories, prune_history, NULL);
}

bool job_memory_set_history_kept(struct job_memory *memory, const struct job_status *written,
                                 bool came_back)
{
    bool is_first = !memory->kept && !came_back;
    prune_history(NULL, &memory->entry);
    if (came_back)
        return false;
    memory->kept_arena = arena_open();
    memory->kept = arena_new(memory->kept_arena, struct job_status);
    *memory->kept = job_status_copy(written, memory->kept_arena);
    return is_first;
}

const struct job_status *job_memory_restore_history(struct job_memory *memory,
                                                    const struct job_status *seen)
{
    if (!memory->kept)
        return seen;
    arena_close(memory->restored_arena);
    memory->restored_arena = arena_open();
    struct job_status *status = arena_new(memory->restored_arena, struct job_status);
    *status = job_status_copy(seen, memory->restored_arena);
    status->history = job_status_copy(memory->kept, memory->restored_arena).history;
    return status;
}

bool job_memory_set_failure(struct job_memory *memory, const char *failure)
{
    uint64_t before = memory->failure;
    memory->failure = failure ? table_hash(failure) : 0;
    return failure && memory->failure != before;
}
