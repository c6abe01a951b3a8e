#include "operator/cache/queue.h"

#include "base/backoff.h"
#include "base/mem.h"
#include "base/table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NOT_WAITING SIZE_MAX
#define NEVER       INT64_MAX

/* Known while it waits, is worked on or has failed. */
struct item {
    struct table_entry entry;
    enum queue_lane lane;
    size_t index;    /* in its lane's heap; NOT_WAITING */
    int64_t at_ms;   /* waiting: when it is due */
    uint64_t serial; /* orders those that are due at the same time */
    bool working;
    int64_t again_ms;  /* working: when it is due afterwards; NEVER: not at all */
    unsigned failures; /* in a row */
    char key[];
};

/* A binary heap of those that wait, the earliest first. */
struct heap {
    struct item **items; /* [length] */
    size_t length, size;
};

struct queue {
    int64_t backoff_first_ms, backoff_max_ms;
    struct table items;
    struct heap waiting[QUEUE_LANES];
    uint64_t serial;
};

/* ---- the heap ---- */

static bool is_before(const struct item *a, const struct item *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->serial < b->serial;
}

static void set(struct heap *heap, size_t index, struct item *item)
{
    heap->items[index] = item;
    item->index = index;
}

static void rise(struct heap *heap, struct item *item)
{
    size_t index = item->index;
    for (; index > 0 && is_before(item, heap->items[(index - 1) / 2]); index = (index - 1) / 2)
        set(heap, index, heap->items[(index - 1) / 2]);
    set(heap, index, item);
}

static void sink(struct heap *heap, struct item *item)
{
    size_t index = item->index;
    for (size_t child; (child = 2 * index + 1) < heap->length; index = child) {
        if (child + 1 < heap->length && is_before(heap->items[child + 1], heap->items[child]))
            child++;
        if (!is_before(heap->items[child], item))
            break;
        set(heap, index, heap->items[child]);
    }
    set(heap, index, item);
}

static void wait_until(struct queue *queue, struct item *item, int64_t at_ms)
{
    struct heap *heap = &queue->waiting[item->lane];
    if (heap->length == heap->size) {
        heap->size = heap->size ? 2 * heap->size : 64;
        heap->items = xrealloc(heap->items, heap->size * sizeof(struct item *));
    }
    item->at_ms = at_ms;
    item->serial = queue->serial++;
    item->index = heap->length++;
    rise(heap, item);
}

static void wait_no_more(struct queue *queue, struct item *item)
{
    struct heap *heap = &queue->waiting[item->lane];
    size_t index = item->index;
    struct item *last = heap->items[--heap->length];
    item->index = NOT_WAITING;
    if (last == item)
        return;
    set(heap, index, last);
    /* The last one may belong above or below the gap; one of the two does nothing. */
    rise(heap, last);
    sink(heap, last);
}

/* ---- items ---- */

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
    if (item->working || item->index != NOT_WAITING || item->failures > 0)
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
        wait_until(queue, item, item->again_ms);
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
        free(queue->waiting[lane].items);
    free(queue);
}

static struct item *make_item(struct queue *queue, const char *key)
{
    size_t bytes = strlen(key) + 1;
    struct item *item = xcalloc(1, sizeof *item + bytes);
    memcpy(item->key, key, bytes);
    item->entry.key = item->key;
    item->index = NOT_WAITING;
    item->again_ms = NEVER;
    table_add(&queue->items, &item->entry);
    return item;
}

void queue_add(struct queue *queue, const char *key, enum queue_lane lane, int64_t at_ms)
{
    struct item *item = find(queue, key);
    if (!item)
        item = make_item(queue, key);
    bool waits = item->index != NOT_WAITING;
    /* A key waits once: however many events a job causes, they end in one pass. */
    if (waits && item->lane == lane && at_ms >= item->at_ms)
        return;
    if (waits) {
        wait_no_more(queue, item);
        at_ms = at_ms < item->at_ms ? at_ms : item->at_ms;
    }
    item->lane = lane;
    if (!item->working)
        wait_until(queue, item, at_ms);
    else if (at_ms < item->again_ms)
        item->again_ms = at_ms;
}

const char *queue_pop(struct queue *queue, enum queue_lane lane, int64_t now_ms)
{
    if (queue_due(queue, lane) > now_ms)
        return NULL;
    struct item *item = queue->waiting[lane].items[0];
    wait_no_more(queue, item);
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
    if (item->index != NOT_WAITING)
        wait_no_more(queue, item);
    drop_if_idle(queue, item);
}

int64_t queue_due(const struct queue *queue, enum queue_lane lane)
{
    const struct heap *heap = &queue->waiting[lane];
    return heap->length ? heap->items[0]->at_ms : NEVER;
}

size_t queue_length(const struct queue *queue, int64_t now_ms)
{
    size_t due = 0;
    for (int lane = 0; lane < QUEUE_LANES; lane++)
        for (size_t i = 0; i < queue->waiting[lane].length; i++)
            due += queue->waiting[lane].items[i]->at_ms <= now_ms;
    return due;
}
