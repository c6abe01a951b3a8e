#include "agent/comm/roster.h"

#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum state { ABSENT, WAITING, RUNNING };
enum change { UNCHANGED, JOINED, LEFT, LOST };

struct node {
    enum state state;
    bool is_awaited;       /* absent: it may come back */
    int rank;              /* in the last round; -1: it takes no part */
    enum change change;    /* since that round began */
    bool is_spent;         /* no restart is left to it */
    const char *dismissal; /* by the last verdict; NULL: none */
    char name[ROSTER_NAME_BYTES];
};

struct roster {
    struct roster_options options;
    struct node *nodes;
    int count; /* of `nodes` */
    int rounds;
    int size, size_before; /* nodes of the last round, and of the one before */
    bool has_changed;
    bool is_ending;   /* the round that runs is to end */
    bool has_done;    /* nodes of the last round came to the end of the run */
    int64_t gap_ms;   /* between the last regroup and the next; 0: there was none */
    int64_t grows_ms; /* when there may be one */
    int64_t since_ms; /* since when the next round waits; -1: it does not */
    struct str news;  /* roster_describe() */
};

enum { NEWS_BYTES = 1000 };

struct roster *roster_open(const struct roster_options *options)
{
    struct roster *r = xcalloc(1, sizeof *r);
    assert(options->min >= 1 && options->max >= options->min);
    r->options = *options;
    r->since_ms = -1;
    r->grows_ms = INT64_MIN;
    str_init(&r->news, NEWS_BYTES);
    return r;
}

void roster_close(struct roster *r)
{
    if (!r)
        return;
    str_free(&r->news);
    free(r->nodes);
    free(r);
}

static struct node *node_of(struct roster *r, int number)
{
    assert(number >= 0);
    if (number >= r->count)
        r->nodes = xrealloc(r->nodes, (size_t)(number + 1) * sizeof *r->nodes);
    for (; r->count <= number; r->count++)
        r->nodes[r->count] = (struct node){.rank = -1};
    return &r->nodes[number];
}

static int count_state(const struct roster *r, enum state state)
{
    int count = 0;
    for (int i = 0; i < r->count; i++)
        count += r->nodes[i].state == state;
    return count;
}

/* ---- what happens ---- */

static void wait_since(struct roster *r, int64_t now_ms)
{
    if (r->since_ms < 0)
        r->since_ms = now_ms;
}

void roster_join(struct roster *r, int number, int known, const char *name, int64_t now_ms)
{
    struct node *node = node_of(r, number);
    if (node->state == ABSENT && node->change != LOST)
        node->change = node->rank >= 0 ? LOST : JOINED; /* who is back so soon was away */
    node->state = WAITING;
    node->is_awaited = node->is_spent = false;
    node->dismissal = NULL;
    snprintf(node->name, sizeof node->name, "%s", name);
    /* Whoever has been in a round knows how many there were better than a pod's variables do. */
    if (r->rounds == 0 && known > r->options.expected)
        r->options.expected = known;
    bool is_enough = count_state(r, WAITING) >= r->options.min;
    if (r->rounds == 0 ? is_enough : node->rank >= 0)
        wait_since(r, now_ms);
}

void roster_set_restarts(struct roster *r, int number, int left)
{
    node_of(r, number)->is_spent = left <= 0;
}

void roster_limit(struct roster *r, int max)
{
    r->options.max = max > r->options.min ? max : r->options.min;
}

bool roster_leave(struct roster *r, int number, enum roster_loss how, int64_t now_ms)
{
    struct node *node = node_of(r, number);
    bool was_in = node->rank >= 0;
    node->state = ABSENT;
    node->is_awaited = was_in && how == ROSTER_LOST;
    r->has_done |= was_in && how == ROSTER_DONE;
    node->change = !was_in || how == ROSTER_DONE ? UNCHANGED : how == ROSTER_LOST ? LOST : LEFT;
    if (was_in)
        wait_since(r, now_ms);
    else if (r->rounds == 0 && count_state(r, WAITING) < r->options.min)
        r->since_ms = -1;
    return was_in && how != ROSTER_DONE && count_state(r, RUNNING) > 0;
}

/* ---- what follows ---- */

static bool is_absentee(const struct node *node)
{
    return node->state == ABSENT && node->is_awaited;
}

/* All that a round can have are here. */
static bool is_full(const struct roster *r, int waiting)
{
    for (int i = 0; i < r->count; i++)
        if (is_absentee(&r->nodes[i]) && waiting < r->options.max)
            return false;
    return waiting >= r->options.max || r->rounds > 0 || waiting >= r->options.expected;
}

static void tell(struct roster *r, int number, const struct node *node, int64_t waited_ms)
{
    static const char *const words[] = {
        [JOINED] = "joined", [LEFT] = "was asked to end", [LOST] = "was lost"};
    str_printf(&r->news, "%snode %d%s%s%s %s", r->news.length ? ", " : "", number,
               node->name[0] ? " (" : "", node->name, node->name[0] ? ")" : "",
               words[node->change]);
    if (node->change == LOST && node->state != ABSENT)
        str_add(&r->news, " and is back");
    else if (node->change == LOST)
        str_printf(&r->news, " and not back within %g s", (double)waited_ms / 1000);
}

/* The nodes that wait, in order, as many as a round may have. */
static void start(struct roster *r, int64_t now_ms)
{
    int64_t waited_ms = r->since_ms < 0 ? 0 : now_ms - r->since_ms;
    r->size_before = r->size;
    r->size = 0;
    r->has_changed = r->is_ending;
    str_clear(&r->news);
    for (int i = 0; i < r->count; i++) {
        struct node *node = &r->nodes[i];
        bool was_in = node->rank >= 0, is_in = node->state == WAITING && r->size < r->options.max;
        if (is_in)
            node->state = RUNNING;
        node->rank = is_in ? r->size++ : -1;
        bool is_told = node->change != UNCHANGED && (is_in || was_in);
        r->has_changed |= is_told;
        if (is_told && r->rounds > 0)
            tell(r, i, node, waited_ms);
        if (is_in || node->state == ABSENT) {
            node->change = UNCHANGED;
            node->is_awaited = false;
        }
    }
    r->rounds++;
    r->is_ending = r->has_done = false;
    r->since_ms = -1;
}

/* Whether the next round would have other nodes than the last, or some of them anew. */
static bool would_change(const struct roster *r)
{
    bool changes = r->is_ending || r->rounds == 0;
    int size = 0;
    for (int i = 0; i < r->count; i++) {
        const struct node *node = &r->nodes[i];
        bool is_in = node->state == WAITING && size < r->options.max;
        size += is_in;
        changes |= node->change != UNCHANGED && (is_in || node->rank >= 0);
    }
    return changes;
}

/* Sends away who was in the last round and waits for the next: all of them, or those who have no
 * restart left. */
static bool dismiss(struct roster *r, bool only_spent, const char *why)
{
    bool has_any = false;
    for (int i = 0; i < r->count; i++) {
        struct node *node = &r->nodes[i];
        node->dismissal = NULL;
        if (node->state != WAITING || node->rank < 0 || (only_spent && !node->is_spent))
            continue;
        node->state = ABSENT;
        node->change = LOST;
        node->is_awaited = has_any = true;
        node->dismissal = why;
    }
    return has_any;
}

static void note_regroup(struct roster *r, int64_t now_ms)
{
    int64_t patience_ms = r->options.patience_ms, most_ms = ROSTER_REGROUP_MOST_MS;
    bool is_soon = r->gap_ms > 0 && now_ms - r->grows_ms < r->gap_ms;
    most_ms = patience_ms > most_ms ? patience_ms : most_ms;
    r->gap_ms = is_soon ? 2 * r->gap_ms : patience_ms;
    r->gap_ms = r->gap_ms < most_ms ? r->gap_ms : most_ms;
    r->grows_ms = now_ms + r->gap_ms;
}

static enum roster_verdict look_at_round(struct roster *r, int64_t now_ms, int64_t *ret_until_ms)
{
    bool may_grow = r->size < r->options.max;
    for (int i = 0; i < r->count; i++)
        if (r->nodes[i].rank >= 0 && r->nodes[i].state != RUNNING)
            return ROSTER_WAIT; /* it ends already */
    for (int i = 0; i < r->count && may_grow && !r->is_ending; i++)
        if (r->nodes[i].state == WAITING) {
            if (now_ms < r->grows_ms) {
                *ret_until_ms = r->grows_ms;
                return ROSTER_WAIT;
            }
            r->is_ending = true;
            note_regroup(r, now_ms);
            return ROSTER_REGROUP;
        }
    return ROSTER_WAIT;
}

enum roster_verdict roster_decide(struct roster *r, int64_t now_ms, int64_t *ret_until_ms)
{
    int waiting = count_state(r, WAITING);
    *ret_until_ms = INT64_MAX;
    if (count_state(r, RUNNING) > 0)
        return look_at_round(r, now_ms, ret_until_ms);
    /* Who is done does not return: with fewer than MIN they might wait for ever. */
    if (waiting < r->options.min && r->has_done &&
        dismiss(r, false, "other nodes have come to the end of the run, and too few are left"))
        return ROSTER_DISMISS;
    if (waiting < r->options.min || r->nodes[0].state != WAITING)
        return ROSTER_WAIT;
    int64_t until_ms = (r->since_ms < 0 ? now_ms : r->since_ms) + r->options.patience_ms;
    if (!is_full(r, waiting) && now_ms < until_ms) {
        *ret_until_ms = until_ms;
        return ROSTER_WAIT;
    }
    if (!would_change(r) && dismiss(r, true, ROSTER_NO_RESTART))
        return ROSTER_DISMISS;
    start(r, now_ms);
    return ROSTER_START;
}

/* ---- what is ---- */

int roster_nodes(const struct roster *r)
{
    return r->size;
}

int roster_rank(const struct roster *r, int number)
{
    return number < r->count ? r->nodes[number].rank : -1;
}

const char *roster_dismissal(const struct roster *r, int number)
{
    return number < r->count ? r->nodes[number].dismissal : NULL;
}

int64_t roster_grows_ms(const struct roster *r)
{
    return r->grows_ms;
}

bool roster_has_changed(const struct roster *r)
{
    return r->has_changed;
}

bool roster_is_running(const struct roster *r, int number)
{
    return number < r->count && r->nodes[number].state == RUNNING;
}

void roster_describe(const struct roster *r, struct str *out)
{
    if (!r->news.length)
        return;
    str_printf(out, "%d node%s", r->size, r->size == 1 ? "" : "s");
    if (r->size != r->size_before)
        str_printf(out, " instead of %d", r->size_before);
    str_printf(out, ": %s", str_text(&r->news));
}

void roster_describe_wait(const struct roster *r, struct str *out)
{
    int last = r->rounds == 0 ? r->options.expected : r->count;
    int waiting = count_state(r, WAITING);
    const char *before = "; missing: node";
    str_printf(out, "%d node%s here, at least %d are needed", waiting,
               waiting == 1 ? " is" : "s are", r->options.min);
    for (int i = 0; i < last; i++)
        if (i >= r->count ||
            (r->nodes[i].state == ABSENT && (r->rounds == 0 || r->nodes[i].is_awaited))) {
            str_printf(out, "%s %d", before, i);
            before = "";
        }
}
