#include "operator/cache/queue.h"

#include "base/backoff.h"
#include "base/mem.h"
#include "base/schedule.h"
#include "base/table.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define NEVER INT64_MAX

/* Known while it waits, is worked on or has failed. */
struct item {
    struct table_entry entry;
    enum queue_lane lane;
    struct schedule_entry waiting; /* in its lane */
    bool working;
    int64_t again_ms;  /* working: when it is due afterwards; NEVER: not at all */
    unsigned failures; /* in a row */
    char key[];
};

struct queue {
    int64_t backoff_first_ms, backoff_max_ms;
    struct table items;
    struct schedule waiting[QUEUE_LANES];
};

/* ---- items ---- */

static struct item *item_that_waits(struct schedule_entry *entry)
{
    return (struct item *)((char *)entry - offsetof(struct item, waiting));
}

static struct schedule *lane_of(struct queue *queue, const struct item *item)
{
    return &queue->waiting[item->lane];
}

static struct item *find(const struct queue *queue, const char *key)
{
    return (struct item *)table_find(&queue->items, key);
}

static struct item *find_working(const struct queue *queue, const char *key)
{
    struct item *item = find(queue, key);
    assert(item && item->working);
    return item;
}

static void drop_if_idle(struct queue *queue, struct item *item)
{
    /* An item with failures is kept although it does not wait: its next failure must wait
     * longer. */
    if (item->working || schedule_waits(&item->waiting) || item->failures > 0)
        return;
    table_remove(&queue->items, &item->entry);
    free(item);
}

/* As client-go's workqueue: a key that is added while it is worked on is due again afterwards. So a
 * job never has two passes at once, and no change is lost. */
static void end_work(struct queue *queue, struct item *item)
{
    item->working = false;
    if (item->again_ms != NEVER)
        schedule_add(lane_of(queue, item), &item->waiting, item->again_ms);
    item->again_ms = NEVER;
    drop_if_idle(queue, item);
}

/* ---- the queue ---- */

struct queue *queue_open(int64_t backoff_first_ms, int64_t backoff_max_ms)
{
    assert(backoff_first_ms > 0 && backoff_max_ms >= backoff_first_ms &&
           backoff_max_ms < INT64_MAX / 4);
    struct queue *queue = xcalloc(1, sizeof *queue);
    queue->backoff_first_ms = backoff_first_ms;
    queue->backoff_max_ms = backoff_max_ms;
    return queue;
}

static void free_item(void *context, struct table_entry *entry)
{
    (void)context;
    free(entry);
}

void queue_close(struct queue *queue)
{
    if (!queue)
        return;
    table_each(&queue->items, free_item, NULL);
    table_free(&queue->items);
    for (int lane = 0; lane < QUEUE_LANES; lane++)
        schedule_free(&queue->waiting[lane]);
    free(queue);
}

static struct item *make_item(struct queue *queue, const char *key)
{
    size_t bytes = strlen(key) + 1;
    struct item *item = xcalloc(1, sizeof *item + bytes);
    memcpy(item->key, key, bytes);
    item->entry.key = item->key;
    item->again_ms = NEVER;
    table_add(&queue->items, &item->entry);
    return item;
}

void queue_add(struct queue *queue, const char *key, enum queue_lane lane, int64_t at_ms)
{
    struct item *item = find(queue, key);
    if (!item)
        item = make_item(queue, key);
    bool waits = schedule_waits(&item->waiting);
    /* A key waits once: however many events a job causes, they end in one pass. */
    if (waits && item->lane == lane && at_ms >= item->waiting.at_ms)
        return;
    if (waits) {
        schedule_remove(lane_of(queue, item), &item->waiting);
        at_ms = at_ms < item->waiting.at_ms ? at_ms : item->waiting.at_ms;
    }
    item->lane = lane;
    if (!item->working)
        schedule_add(lane_of(queue, item), &item->waiting, at_ms);
    else if (at_ms < item->again_ms)
        item->again_ms = at_ms;
}

const char *queue_pop(struct queue *queue, enum queue_lane lane, int64_t now_ms)
{
    if (queue_due(queue, lane) > now_ms)
        return NULL;
    struct item *item = item_that_waits(schedule_first(&queue->waiting[lane]));
    schedule_remove(&queue->waiting[lane], &item->waiting);
    item->working = true;
    return item->key;
}

void queue_done(struct queue *queue, const char *key)
{
    end_work(queue, find_working(queue, key));
}

int64_t queue_failed(struct queue *queue, const char *key, int64_t now_ms)
{
    struct item *item = find_working(queue, key);
    item->failures += item->failures < UINT32_MAX;
    int64_t at_ms =
        now_ms + backoff_most_ms(queue->backoff_first_ms, queue->backoff_max_ms, item->failures);
    item->again_ms = at_ms < item->again_ms ? at_ms : item->again_ms;
    at_ms = item->again_ms;
    end_work(queue, item);
    return at_ms;
}

void queue_succeeded(struct queue *queue, const char *key)
{
    struct item *item = find_working(queue, key);
    item->failures = 0;
    end_work(queue, item);
}

void queue_forget(struct queue *queue, const char *key)
{
    struct item *item = find(queue, key);
    if (!item)
        return;
    item->failures = 0;
    item->again_ms = NEVER;
    if (schedule_waits(&item->waiting))
        schedule_remove(lane_of(queue, item), &item->waiting);
    drop_if_idle(queue, item);
}

int64_t queue_due(const struct queue *queue, enum queue_lane lane)
{
    return schedule_due(&queue->waiting[lane]);
}

size_t queue_length(const struct queue *queue, int64_t now_ms)
{
    size_t due = 0;
    for (int lane = 0; lane < QUEUE_LANES; lane++)
        for (size_t i = 0; i < queue->waiting[lane].count; i++)
            due += queue->waiting[lane].entries[i]->at_ms <= now_ms;
    return due;
}
