/* Several candidates and one lease on a network that loses and delays, with processes that stop and
 * die and clocks that differ and run at different speeds: at no instant of a clock that all share
 * do two believe that they hold it. A failing seed is printed; run it alone with
 * LEASE_SEED=N. */
#include "tests/support.h"

#include "base/backoff.h"
#include "base/mem.h"
#include "operator/leader/lease.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TICK_MS = 10,
    CANDIDATES = 3,
    MESSAGES = 64,
    TIMEOUT_MS = 3333, /* of a request, by the candidate's clock */
    FAULTS_MS = 240 * 1000,
    SETTLE_MS = 60 * 1000,
    SEEDS = 150,
    NEVER = -1,
};

/* A request on its way. It reaches the server even if its sender has given it up. */
struct message {
    bool is_used;
    int candidate;
    unsigned request; /* of that candidate */
    enum lease_action want;
    struct lease_record record;
    int64_t arrives_ms, answered_ms; /* common clock; NEVER: lost */
    bool is_applied;
    enum lease_outcome outcome;
};

struct candidate {
    struct lease lease;
    int64_t offset_ms, wall_offset_ms;
    int64_t rate_permille;
    int64_t stopped_until_ms; /* common clock */
    unsigned request;         /* that is waited for; 0: none */
    unsigned requests, lives;
    int64_t sent_ms; /* its clock */
};

struct world {
    uint64_t random;
    int64_t now_ms; /* the clock that all share */
    bool has_faults;
    struct candidate candidates[CANDIDATES];
    struct message messages[MESSAGES];
    struct lease_record stored;
    uint64_t version;
    int takeovers; /* how often another one became the holder */
    int last_holder;
};

static int64_t pick(struct world *w, int64_t low, int64_t high)
{
    return low + (int64_t)(backoff_random(&w->random) % (uint64_t)(high - low + 1));
}

static bool chance(struct world *w, int percent)
{
    return w->has_faults && pick(w, 1, 100) <= percent;
}

static int64_t local_ms(const struct world *w, const struct candidate *c)
{
    return c->offset_ms + w->now_ms * c->rate_permille / 1000;
}

static void start(struct world *w, struct candidate *c)
{
    struct lease_options options = {.duration_ms = 15000,
                                    .renew_deadline_ms = 10000,
                                    .retry_ms = 2000,
                                    .seed = backoff_random(&w->random)};
    snprintf(options.identity, sizeof options.identity, "c%d-%u", (int)(c - w->candidates),
             c->lives++);
    lease_init(&c->lease, &options);
    c->request = 0;
}

static void post(struct world *w, struct candidate *c, enum lease_action want,
                 const struct lease_record *record)
{
    struct message *m = w->messages;
    while (m->is_used)
        m++;
    assert_true(m < w->messages + MESSAGES);
    c->request = ++c->requests;
    c->sent_ms = local_ms(w, c);
    *m = (struct message){.is_used = true,
                          .candidate = (int)(c - w->candidates),
                          .request = c->request,
                          .want = want,
                          .record = *record};
    m->arrives_ms = w->now_ms + (chance(w, 15) ? pick(w, 0, 20000) : pick(w, 0, 100));
    m->answered_ms = m->arrives_ms + (chance(w, 15) ? pick(w, 0, 20000) : pick(w, 0, 100));
    if (chance(w, 15))
        m->answered_ms = NEVER;
    if (chance(w, 10))
        m->arrives_ms = m->answered_ms = NEVER;
}

/* What an API server does with it. */
static void apply(struct world *w, struct message *m)
{
    m->is_applied = true;
    m->outcome = LEASE_STORED;
    bool same = w->stored.exists && strcmp(m->record.version, w->stored.version) == 0;
    if (m->want != LEASE_CREATE && !w->stored.exists)
        m->outcome = LEASE_ABSENT;
    else if ((m->want == LEASE_CREATE && w->stored.exists) || (m->want == LEASE_UPDATE && !same))
        m->outcome = LEASE_REFUSED;
    else if (m->want != LEASE_READ) {
        w->stored = m->record;
        w->stored.exists = true;
        snprintf(w->stored.version, sizeof w->stored.version, "%llu",
                 (unsigned long long)++w->version);
    }
    m->record = w->stored;
    if (m->outcome == LEASE_STORED && chance(w, 5))
        m->outcome = LEASE_UNKNOWN; /* a 500 after the fact */
}

static void deliver(struct world *w)
{
    for (struct message *m = w->messages; m < w->messages + MESSAGES; m++) {
        if (!m->is_used)
            continue;
        if (!m->is_applied && m->arrives_ms != NEVER && m->arrives_ms <= w->now_ms)
            apply(w, m);
        struct candidate *c = &w->candidates[m->candidate];
        bool is_waited_for = c->request == m->request;
        bool has_come = m->is_applied && m->answered_ms != NEVER && m->answered_ms <= w->now_ms;
        if (has_come && is_waited_for && c->stopped_until_ms <= w->now_ms) {
            c->request = 0;
            lease_feed(&c->lease, m->outcome, &m->record, local_ms(w, c));
            is_waited_for = false;
        }
        if (!is_waited_for && (m->is_applied || m->arrives_ms == NEVER))
            m->is_used = false;
    }
}

static void step_candidate(struct world *w, struct candidate *c)
{
    if (chance(w, 1) && pick(w, 1, 40) == 1)
        c->stopped_until_ms = w->now_ms + pick(w, 1000, 30000);
    if (c->stopped_until_ms > w->now_ms)
        return;
    if (chance(w, 1) && pick(w, 1, 60) == 1)
        start(w, c); /* it died; another took its place */
    if (chance(w, 1) && pick(w, 1, 60) == 1)
        lease_release(&c->lease, local_ms(w, c));
    if (c->request && local_ms(w, c) - c->sent_ms >= TIMEOUT_MS) {
        c->request = 0;
        lease_feed(&c->lease, LEASE_UNKNOWN, NULL, local_ms(w, c));
    }
    struct lease_record record = {0};
    enum lease_action want =
        lease_next(&c->lease, local_ms(w, c), w->now_ms + c->wall_offset_ms, &record);
    if (want == LEASE_OVER && w->has_faults)
        start(w, c);
    else if (want != LEASE_WAIT && want != LEASE_OVER)
        post(w, c, want, &record);
}

/* The one who believes in itself, -1 if nobody does. Stopped ones are asked too: it is what they
 * would say. */
static int holder(struct world *w)
{
    int found = -1;
    for (int i = 0; i < CANDIDATES; i++) {
        if (!lease_is_held(&w->candidates[i].lease, local_ms(w, &w->candidates[i])))
            continue;
        if (found >= 0)
            print_error("at %lld ms %d and %d both hold the lease\n", (long long)w->now_ms, found,
                        i);
        assert_int_equal(found, -1);
        found = i;
    }
    if (found >= 0 && found != w->last_holder) {
        w->takeovers++;
        w->last_holder = found;
    }
    return found;
}

static int run_until(struct world *w, int64_t end_ms)
{
    int last = -1;
    for (; w->now_ms < end_ms; w->now_ms += TICK_MS) {
        deliver(w);
        for (int i = 0; i < CANDIDATES; i++)
            step_candidate(w, &w->candidates[i]);
        last = holder(w);
    }
    return last;
}

static void set_up(struct world *w, uint64_t seed)
{
    *w = (struct world){.random = seed, .has_faults = true, .last_holder = -1};
    for (int i = 0; i < CANDIDATES; i++) {
        struct candidate *c = &w->candidates[i];
        c->offset_ms = pick(w, 0, 1000000000);
        c->wall_offset_ms = pick(w, 0, INT64_C(2000000000000));
        /* a second of one is at most 1.35 of another: less than duration / renew deadline */
        c->rate_permille = pick(w, 850, 1150);
        start(w, c);
    }
}

static int run_seed(uint64_t seed)
{
    struct world w;
    set_up(&w, seed);
    run_until(&w, FAULTS_MS);

    /* when the faults end somebody gets it, and keeps it */
    w.has_faults = false;
    int first = run_until(&w, FAULTS_MS + SETTLE_MS);
    assert_true(first >= 0);
    int takeovers = w.takeovers;
    assert_int_equal(run_until(&w, FAULTS_MS + 2 * SETTLE_MS), first);
    assert_int_equal(w.takeovers, takeovers);

    /* when it is released another has it after one retry, and need not wait for its end */
    struct candidate *c = &w.candidates[first];
    lease_release(&c->lease, local_ms(&w, c));
    int second = run_until(&w, w.now_ms + 5000);
    assert_true(second >= 0 && second != first);
    struct lease_record record;
    assert_int_equal(lease_next(&c->lease, local_ms(&w, c), 0, &record), LEASE_OVER);
    return takeovers;
}

static void never_two_holders(void **state)
{
    (void)state;
    const char *only = getenv("LEASE_SEED");
    int takeovers = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        if (only && strtoull(only, NULL, 10) != seed)
            continue;
        print_message("# seed %llu\n", (unsigned long long)seed);
        takeovers += run_seed(seed);
    }
    assert_true(only || takeovers > SEEDS); /* the faults do make it change hands */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(never_two_holders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
