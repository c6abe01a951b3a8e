#include "operator/apply/job_record.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "operator/job/job_status.h"

static void free_memory(struct job_record *record)
{
    expectations_close(record->expect);
    job_record_drop_unconfirmed(record);
    job_record_drop_completed(record);
    job_record_drop_conflict(record);
    arena_close(record->kept_arena);
    arena_close(record->restored_arena);
    free(record->refused);
    free(record);
}

struct job_record *job_record_find(const struct table *records, const char *key, const char *uid)
{
    struct job_record *record = (struct job_record *)table_find(records, key);
    return record && strcmp(record->uid, uid) == 0 ? record : NULL;
}

struct job_record *job_record_take(struct table *records, const char *key, const char *uid)
{
    struct job_record *record = job_record_find(records, key, uid);
    if (record)
        return record;
    job_record_forget(records, key);
    size_t key_bytes = strlen(key) + 1, uid_bytes = strlen(uid) + 1;
    record = xcalloc(1, sizeof *record + key_bytes + uid_bytes);
    record->entry.key = record->key = memcpy(record->texts, key, key_bytes);
    record->uid = memcpy(record->texts + key_bytes, uid, uid_bytes);
    table_add(records, &record->entry);
    return record;
}

void job_record_forget(struct table *records, const char *key)
{
    struct job_record *record = (struct job_record *)table_find(records, key);
    if (!record)
        return;
    table_remove(records, &record->entry);
    free_memory(record);
}

static void free_entry(void *context, struct table_entry *entry)
{
    (void)context;
    free_memory((struct job_record *)entry);
}

void job_record_free_all(struct table *records)
{
    table_each(records, free_entry, NULL);
    table_free(records);
}

void job_record_refuse(struct job_record *record, const char *text)
{
    free(record->refused);
    record->refused = xstrdup(text);
}

bool job_record_clear_refusal(struct job_record *record)
{
    bool refused = record->refused != NULL;
    free(record->refused);
    record->refused = NULL;
    return refused;
}

void job_record_add_unconfirmed(struct job_record *record, const struct job_status *before,
                                const struct job_status *tried)
{
    /* Each failed try may be the one that reached the server, so all tries over the same status are
     * kept. There is room for the first ones and the newest. */
    const struct unconfirmed *old = record->unconfirmed;
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
    job_record_drop_unconfirmed(record);
    record->unconfirmed = unconfirmed;
}

void job_record_drop_unconfirmed(struct job_record *record)
{
    if (record->unconfirmed)
        arena_close(record->unconfirmed->arena);
    record->unconfirmed = NULL;
}

/* Whether this is what is seen of the tried status. Of its history no more is seen than what was
 * recalled, where the API server does not keep it. */
static bool is_seen(const struct job_record *record, const struct job_status *tried,
                    const struct job_status *seen)
{
    struct job_status shown = *tried;
    if (record->kept)
        shown.history = seen->history;
    return job_status_equal(&shown, seen);
}

/* This status of ours was written after all: what waits over the one before it waits over this. */
static void move_completed(struct job_record *record, const struct job_status *before,
                           const struct job_status *done)
{
    struct unwritten *unwritten = record->unwritten;
    if (unwritten && job_status_equal(&unwritten->before, before) &&
        !job_status_starts_over(before, done))
        unwritten->before = job_status_copy(done, unwritten->arena);
}

bool job_record_confirm_write(struct job_record *record, const struct job_status *seen,
                              struct arena *arena, struct job_status *ret_before)
{
    const struct unconfirmed *unconfirmed = record->unconfirmed;
    if (!unconfirmed || job_status_equal(&unconfirmed->before, seen))
        return false; /* as before: it may be done yet */
    const struct job_status *done = NULL;
    for (int i = 0; i < unconfirmed->count; i++)
        if (is_seen(record, &unconfirmed->tried[i], seen))
            done = &unconfirmed->tried[i];
    if (done) {
        *ret_before = job_status_copy(&unconfirmed->before, arena);
        move_completed(record, &unconfirmed->before, done);
    }
    /* The cache shows that status without its history, which was pruned; ours goes with it from now
     * on. */
    if (done && record->kept)
        job_record_set_history_kept(record, done, false);
    job_record_drop_unconfirmed(record);
    return done != NULL;
}

static void prune_history(void *context, struct table_entry *entry)
{
    (void)context;
    struct job_record *record = (struct job_record *)entry;
    arena_close(record->kept_arena);
    record->kept_arena = NULL;
    record->kept = NULL;
}

static void doubt(void *context, struct table_entry *entry)
{
    struct job_record *record = (struct job_record *)entry;
    prune_history(context, entry);
    job_record_drop_completed(record);
    job_record_drop_conflict(record);
    record->proven = false;
    record->pods_until_ms = 0;
}

void job_record_prune_histories(struct table *records)
{
    table_each(records, doubt, NULL);
}

bool job_record_set_history_kept(struct job_record *record, const struct job_status *written,
                                 bool came_back)
{
    bool is_first = !record->kept && !came_back;
    prune_history(NULL, &record->entry);
    if (came_back)
        return false;
    record->kept_arena = arena_open();
    record->kept = arena_new(record->kept_arena, struct job_status);
    *record->kept = job_status_copy(written, record->kept_arena);
    return is_first;
}

const struct job_status *job_record_restore_history(struct job_record *record,
                                                    const struct job_status *seen)
{
    if (!record->kept)
        return seen;
    arena_close(record->restored_arena);
    record->restored_arena = arena_open();
    struct job_status *status = arena_new(record->restored_arena, struct job_status);
    *status = job_status_copy(seen, record->restored_arena);
    status->history = job_status_copy(record->kept, record->restored_arena).history;
    return status;
}

int64_t job_record_hold_ms(struct job_record *record, bool may_wait, int64_t steady_ms)
{
    if (may_wait && !record->held) {
        record->held_since_ms = record->held_news_ms = steady_ms;
        record->held = true;
        return HELD_QUIET_MS;
    }
    int64_t quiet_ms = record->held_news_ms + HELD_QUIET_MS,
            last_ms = record->held_since_ms + HELD_MAX_MS;
    record->held = may_wait && steady_ms < quiet_ms && steady_ms < last_ms;
    if (!record->held)
        return 0;
    /* a pass that comes before its time has seen something */
    record->held_news_ms = steady_ms;
    int64_t wait_ms = last_ms - steady_ms;
    return wait_ms < HELD_QUIET_MS ? wait_ms : HELD_QUIET_MS;
}

void job_record_keep_completed(struct job_record *record, const struct job_status *before,
                               const struct job_status *after)
{
    job_record_drop_completed(record);
    struct arena *arena = arena_open();
    struct unwritten *unwritten = arena_new(arena, struct unwritten);
    unwritten->arena = arena;
    unwritten->before = job_status_copy(before, arena);
    unwritten->after = job_status_copy(after, arena);
    record->unwritten = unwritten;
}

void job_record_drop_completed(struct job_record *record)
{
    if (record->unwritten)
        arena_close(record->unwritten->arena);
    record->unwritten = NULL;
}

const struct history *job_record_completed(struct job_record *record, const struct job_status *seen)
{
    if (record->unwritten && !job_status_equal(&record->unwritten->before, seen))
        job_record_drop_completed(record);
    return record->unwritten ? &record->unwritten->after.history : NULL;
}

void job_record_set_conflict(struct job_record *record, const char *version,
                             const struct job_status *status)
{
    job_record_drop_conflict(record);
    struct arena *arena = arena_open();
    struct conflict *conflict = arena_new(arena, struct conflict);
    conflict->arena = arena;
    conflict->version = arena_strdup(arena, version ? version : "");
    conflict->status = job_status_copy(status, arena);
    record->conflict = conflict;
}

void job_record_drop_conflict(struct job_record *record)
{
    if (record->conflict)
        arena_close(record->conflict->arena);
    record->conflict = NULL;
}

bool job_record_judge_conflict(struct job_record *record, const char *uid, const char *version,
                               const struct job_status *seen)
{
    const struct conflict *conflict = record->conflict;
    bool is_it = uid && strcmp(record->uid, uid) == 0;
    if (!conflict || (is_it && strcmp(conflict->version, version ? version : "") == 0))
        return false;
    bool differs = !is_it || !job_status_equal(&conflict->status, seen);
    job_record_drop_conflict(record);
    return differs;
}

bool job_record_set_failure(struct job_record *record, const char *failure)
{
    uint64_t before = record->failure;
    record->failure = failure ? table_hash(failure) : 0;
    return failure && record->failure != before;
}
