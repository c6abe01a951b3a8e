/* What may happen in the small world, and which orders of it are tried. */
#include "tests/operator/histories/world.h"
#include "tests/support.h"

#include <string.h>

static bool is_over(const struct pod *pod)
{
    return pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED;
}

struct list {
    struct choice *choices;
    size_t count;
};

static void may(struct list *list, enum choice_kind kind, size_t index, int way)
{
    assert_true(list->count < WORLD_MAX_CHOICES);
    list->choices[list->count++] = (struct choice){kind, (int)index, way};
}

static bool is_busy(void)
{
    return world->sent_count > 0 || world->event_count > 0;
}

bool world_wants_pass(void)
{
    return queue_due(world->queue, QUEUE_URGENT) <= world->s.truth->now_ms;
}

static void pod_may(struct list *list, size_t i)
{
    const struct pod *pod = &world->s.truth->pods[i];
    if (pod->deleted_ms)
        may(list, CHOICE_GO, i, 0);
    else if (pod->phase == POD_PENDING)
        may(list, CHOICE_RUN, i, 0);
    else if (pod->phase == POD_RUNNING)
        may(list, CHOICE_SUCCEED, i, 0);
    for (int way = 0; way < 2 && world->left.failures; way++)
        if (pod->phase == POD_RUNNING && !pod->deleted_ms && world->setting->exit_codes[way])
            may(list, CHOICE_FAIL, i, way);
    if (world->left.deletions && !pod->deleted_ms) {
        may(list, CHOICE_DELETE, i, 0);
        if (!is_over(pod))
            may(list, CHOICE_EVICT, i, 0);
    }
}

static void job_may(struct list *list)
{
    for (int i = 0; i < world->setting->edit_count && world->left.edits; i++)
        /* a job that its limit has ended stays ended */
        if (world->setting->edits[i] != EDIT_LIMIT || !world->s.was_finished)
            may(list, CHOICE_EDIT, (size_t)i, 0);
}

uint64_t world_rank(enum cache_kind kind, const char *name)
{
    return hash_text(0, name) + (uint64_t)kind;
}

uint64_t world_rank_of_event(size_t i)
{
    return world->events[i].name + (uint64_t)world->events[i].kind;
}

/* While a request waits for its answer: all that does not concern its object may as well happen
 * before the plan or after it, as only passes look. */
static void plan_may(struct list *list)
{
    may(list, CHOICE_ANSWER, 0, 0);
    if (world->left.troubles) {
        may(list, CHOICE_LOSE_ANSWER, 0, 0);
        may(list, CHOICE_LOSE_FOR_GOOD, 0, 0);
        may(list, CHOICE_BREAK, 0, 0);
        if (server_writes())
            may(list, CHOICE_REFUSE, 0, 0);
    }
    if (server_awaits("j"))
        job_may(list);
    for (size_t i = 0; i < world->s.truth->pod_count; i++)
        if (server_awaits(world->s.truth->pods[i].name))
            pod_may(list, i);
}

/* What happened to an object is shown at once, unless more happens to it: as nobody looks at it
 * otherwise, it may as well have happened just now. */
static void object_may(struct list *list)
{
    for (size_t i = 0; i < world->event_count; i++)
        if (world_rank_of_event(i) == world->moved && server_may_show(i))
            may(list, CHOICE_SHOW, i, 0);
    for (size_t i = 0; i < world->s.truth->pod_count; i++)
        if (world_rank(CACHE_PODS, world->s.truth->pods[i].name) == world->moved)
            pod_may(list, i);
}

/* What is shown before one pass that does something commutes: one order stands for all. */
static void world_may(struct list *list)
{
    uint64_t from = world->shown_up_to;
    for (size_t i = 0; i < world->event_count; i++)
        if (server_may_show(i) && world_rank_of_event(i) >= from)
            may(list, CHOICE_SHOW, i, 0);
    for (size_t i = 0; i < world->s.truth->pod_count; i++)
        if (world_rank(CACHE_PODS, world->s.truth->pods[i].name) >= from)
            pod_may(list, i);
    if (world_rank(CACHE_JOBS, "j") >= from)
        job_may(list);
}

static void operator_may(struct list *list)
{
    if (world_wants_pass()) {
        may(list, CHOICE_PASS, 0, 0);
        return;
    }
    if (operator_waits() && (world->held || !is_busy()))
        may(list, CHOICE_WAIT, 0, 0);
    else if (operator_waits() && world->left.delays)
        may(list, CHOICE_DELAY, 0, 0);
}

bool world_spends(struct choice choice)
{
    return choice.kind == CHOICE_FAIL || choice.kind == CHOICE_DELETE ||
           choice.kind == CHOICE_EVICT || choice.kind == CHOICE_EDIT ||
           choice.kind == CHOICE_DELAY || choice.kind == CHOICE_CRASH ||
           (choice.kind > CHOICE_ANSWER && choice.kind <= CHOICE_REFUSE);
}

/* First what leaves as much allowed as before. */
static void spend_last(struct list *list)
{
    struct choice sorted[WORLD_MAX_CHOICES];
    size_t count = 0;
    for (int spending = 0; spending < 2; spending++)
        for (size_t i = 0; i < list->count; i++)
            if (world_spends(list->choices[i]) == spending)
                sorted[count++] = list->choices[i];
    memcpy(list->choices, sorted, count * sizeof sorted[0]);
}

/* The operator forgets all, and lists what is there. So its death commutes with all but answers: it
 * is tried behind each of these, and what pods and people do may follow. */
static bool may_die(void)
{
    return world->answered || (world->is_whole && (world->sent_count || !world_wants_pass()));
}

/* Not all orders of what may happen are tried, but one of those that nobody can tell apart: a pass
 * looks at the cache alone, a request at one object. */
size_t world_choices(struct choice *ret_choices)
{
    struct list list = {.choices = ret_choices};
    if (world->sent_count) {
        plan_may(&list);
    } else if (world->moved) {
        object_may(&list);
    } else {
        operator_may(&list);
        world_may(&list);
    }
    spend_last(&list);
    if (world->left.crashes && may_die())
        may(&list, CHOICE_CRASH, 0, 0);
    return list.count;
}

/* One that may be shown now anyway, if there is any. */
static int next_to_show(void)
{
    for (size_t i = 0; i < world->event_count; i++) {
        uint64_t rank = world_rank_of_event(i);
        if (server_may_show(i) &&
            (world->moved ? rank == world->moved : rank >= world->shown_up_to))
            return (int)i;
    }
    return 0;
}

bool world_calm_choice(struct choice *ret_choice)
{
    *ret_choice = (struct choice){CHOICE_ANSWER, 0, 0};
    if (world->sent_count)
        return true;
    *ret_choice = (struct choice){CHOICE_SHOW, next_to_show(), 0};
    if (world->event_count)
        return true;
    *ret_choice = (struct choice){CHOICE_PASS, 0, 0};
    if (world_wants_pass())
        return true;
    ret_choice->kind = CHOICE_GO;
    for (size_t i = 0; i < world->s.truth->pod_count; i++) {
        ret_choice->index = (int)i;
        if (world->s.truth->pods[i].deleted_ms)
            return true;
    }
    ret_choice->kind = CHOICE_WAIT;
    return queue_due(world->queue, QUEUE_URGENT) != INT64_MAX;
}
