/* What ranks tell with their heartbeats reaches rank 0, and what it asks reaches them. */
#include "tests/agent/rendezvous_rank.h"
#include "tests/support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { RANKS = 3, HUNG = 1, WITNESS = 2 };

/* Each process has its own. */
static int self;
static atomic_int heard;     /* rank 0's: bits of the ranks whose words came as they were told */
static atomic_int asks;      /* rank 0's: 1: the witness, 2: the rank itself; then 0 */
static atomic_int inspected; /* how often this rank was asked */
static struct rendezvous_inspection last;

static void tell(void *ctx, char place[STORE_KEY_MAX], char report[STORE_VALUE_MAX])
{
    snprintf(place, STORE_KEY_MAX, "place of %d", *(const int *)ctx);
    snprintf(report, STORE_VALUE_MAX, "report of %d", *(const int *)ctx);
}

static void hear(void *ctx, int rank, const char *place, const char *report)
{
    (void)ctx;
    char expected_place[STORE_KEY_MAX], expected_report[STORE_VALUE_MAX];
    tell(&rank, expected_place, expected_report);
    if (strcmp(place, expected_place) == 0 && strcmp(report, expected_report) == 0)
        atomic_fetch_or(&heard, 1 << rank);
}

static void leave(void *ctx, int rank)
{
    (void)ctx;
    atomic_fetch_and(&heard, ~(1 << rank));
}

static bool tick(void *ctx, struct rendezvous_inspection *ret)
{
    (void)ctx;
    int whom = atomic_exchange(&asks, 0);
    *ret = (struct rendezvous_inspection){.rank = HUNG,
                                          .witness = whom == 1 ? WITNESS : -1,
                                          .pid = 77,
                                          .ends = whom == 2,
                                          .why = "no progress for a while"};
    return whom != 0;
}

static void inspect(void *ctx, const struct rendezvous_inspection *inspection)
{
    (void)ctx;
    last = *inspection;
    atomic_fetch_add(&inspected, 1);
}

static int wait_for_key(struct store *s, const char *key, struct error *err)
{
    char value[STORE_VALUE_MAX];
    return s->fn->get(s, key, SUPPORT_PATIENCE_MS, value, err);
}

static int was_asked_so(bool ends, struct error *err)
{
    support_wait_until(atomic_load(&inspected) == 1);
    if (last.rank != HUNG || last.pid != 77 || last.ends != ends ||
        strcmp(last.why, "no progress for a while") != 0)
        return error_set(err, ERR_INPUT, "rank %d, %s", last.rank, last.why);
    return 0;
}

static int ask_and_answer(struct store *s, struct error *err)
{
    if (self == 0) {
        support_wait_until(atomic_load(&heard) == (1 << RANKS) - 1);
        atomic_store(&asks, 1);
        if (wait_for_key(s, "looked", err))
            return -1;
        atomic_store(&asks, 2);
    } else if (self == WITNESS) {
        if (was_asked_so(false, err) || s->fn->set(s, "looked", "", err))
            return -1;
    } else if (was_asked_so(true, err)) {
        return -1;
    }
    return wait_for_key(s, "never", err); /* until the rank that hangs is lost */
}

static struct rendezvous_options options_of(struct process *p)
{
    struct rendezvous_options options = rendezvous_rank_options(p);
    self = p->rank;
    options.health.ctx = &self;
    options.health.tell = tell;
    options.health.inspect = inspect;
    if (self == 0) {
        options.health.hear = hear;
        options.health.leave = leave;
        options.health.tick = tick;
    }
    return options;
}

static int rank_body(struct process *p, struct error *err)
{
    struct rendezvous *r;
    struct rendezvous_options options = options_of(p);
    if (rendezvous_open(&options, &r, err))
        return -1;
    int result = ask_and_answer(rendezvous_store(r), err);
    rendezvous_close(r);
    if (self == 0 && atomic_load(&heard) != 0)
        return error_set(err, ERR_INPUT, "not all have left: %x", atomic_load(&heard));
    return result;
}

static void test_words_and_questions_arrive(void **state)
{
    (void)state;
    struct process all[RANKS] = {0};
    processes_run(all, RANKS, rank_body, 0);
    for (int i = 0; i < RANKS; i++)
        assert_fails(all[i].result, &all[i].err, ERR_PEER,
                     "rank 1 hangs (no progress for a while)");
}

/* Rank 0 says that all are heard, and stays until the others know: it has the store. */
static int part(struct store *s, struct error *err)
{
    char known[STORE_KEY_MAX];
    if (self != 0) {
        snprintf(known, sizeof known, "known to %d", self);
        return wait_for_key(s, "all are heard", err) ? -1 : s->fn->set(s, known, "", err);
    }
    int result = s->fn->set(s, "all are heard", "", err);
    for (int rank = 1; rank < RANKS && result == 0; rank++) {
        snprintf(known, sizeof known, "known to %d", rank);
        result = wait_for_key(s, known, err);
    }
    return result;
}

/* A rank that stands still from its first moment on is known all the same. */
static int patient_body(struct process *p, struct error *err)
{
    struct rendezvous *r;
    struct rendezvous_options options = options_of(p);
    options.beat_ms = 10 * SUPPORT_PATIENCE_MS;
    options.silence_ms = 10 * options.beat_ms;
    if (rendezvous_open(&options, &r, err))
        return -1;
    if (self == 0)
        support_wait_until(atomic_load(&heard) == (1 << RANKS) - 1);
    int result = part(rendezvous_store(r), err);
    rendezvous_close(r);
    return result;
}

static void test_who_is_welcome_is_heard_at_once(void **state)
{
    (void)state;
    struct process all[RANKS] = {0};
    processes_run(all, RANKS, patient_body, 0);
    for (int i = 0; i < RANKS; i++)
        assert_ok(all[i].result, &all[i].err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_words_and_questions_arrive),
                                       cmocka_unit_test(test_who_is_welcome_is_heard_at_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
