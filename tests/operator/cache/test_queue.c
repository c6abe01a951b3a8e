/* The delay queue: stories as tables, then random commands beside a naive list. */
#include "tests/support.h"

#include "base/backoff.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/cache/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_MS 100
#define MAX_MS   1000

/* Commands, separated by ';':
 *   KEY@T      added for time T; KEY~T: as patient
 *   pop T      what is popped at time T is written down, "-" for none; last T: of the patient
 *   due        is written down, "-" for never; patience: of the patient
 *   length T   is written down
 *   done K   failed K T   good K   delete_object K */
struct row {
    const char *script;
    const char *written;
};

static const struct row rows[] = {
    {"pop 0; due", "- -"},
    {"a@5; pop 4; due; pop 5; due", "- 5 a -"},
    /* earliest first, of equal ones the first added */
    {"c@3; a@2; b@2; d@1; pop 9; pop 9; pop 9; pop 9; pop 9", "d a b c -"},
    /* once, with the earliest time */
    {"a@9; a@5; a@7; due; pop 9; done a; pop 9", "5 a -"},
    /* held back while it is worked on */
    {"a@1; pop 1; a@9; a@4; a@6; pop 9; due; done a; due; pop 9", "a - - 4 a"},
    {"a@1; pop 1; done a; pop 9; due", "a - -"},
    /* failures double up to the most */
    {"a@0; pop 0; failed a 0; due; pop 100; failed a 100; due; pop 300; failed a 300; due; pop 700; "
     "failed a 700; due; pop 1500; failed a 1500; due; pop 2500; failed a 2500; due",
     "a 100 a 300 a 700 a 1500 a 2500 a 3500"},
    /* news come before the backoff, and do not end it */
    {"a@0; pop 0; a@7; failed a 0; due; pop 7; failed a 7; due", "a 7 a 207"},
    {"a@0; pop 0; failed a 0; a@7; due; pop 7; done a; a@8; pop 8; failed a 8; due", "a 7 a a 208"},
    /* success ends it */
    {"a@0; pop 0; failed a 0; pop 100; good a; due; a@200; pop 200; failed a 200; due",
     "a a - a 300"},
    /* each key has its own */
    {"a@0; pop 0; failed a 0; b@0; pop 0; failed b 10; due; pop 109; pop 109; due",
     "a b 100 a - 110"},
    /* what is forgotten waits no more and starts anew */
    {"a@5; b@6; delete_object a; due; delete_object a; delete_object x; pop 9; pop 9", "6 b -"},
    {"a@0; pop 0; failed a 0; delete_object a; due; a@1; pop 1; failed a 1; due", "a - a 101"},
    {"a@0; pop 0; a@2; delete_object a; done a; due", "a -"},
    {"a@0; pop 0; delete_object a; a@3; done a; due", "a 3"},
    /* only what is due is a backlog: not what is for later, worked on, or backing off */
    {"length 9; a@3; b@3; c@5; length 2; length 3; length 4; length 5", "0 0 2 2 3"},
    {"a@3; b@3; pop 4; length 4; a@4; length 4; done a; length 4", "a 1 1 2"},
    {"a@0; pop 0; failed a 0; length 99; length 100", "a 0 1"},
    /* lanes: those that are urgent wait for none that are not, however long due, nor the reverse */
    {"a~1; b~2; c@5; due; patience; length 5; pop 5; pop 5; last 5; last 5; last 5",
     "5 1 3 c - a b -"},
    {"a~1; b@1; last 1; last 1; pop 1; length 9", "a - b 0"},
    /* the last word on a key's lane holds, with its earliest time */
    {"a~9; b~1; a@12; due; patience; pop 8; pop 9; last 9", "9 1 - a b"},
    {"a@2; a~7; due; patience; last 1; last 2", "- 2 - a"},
    {"a@2; b@2; a~7; a@7; pop 7; pop 7", "b a"},
    {"a@1; pop 1; a~3; failed a 1; due; patience", "a - 3"},
    {"a~1; last 1; failed a 1; due; patience; last 101; a@200; good a; due; patience",
     "a - 101 a 200 -"},
    {"a~1; b~2; delete_object a; patience; delete_object b; patience; length 9", "2 - 0"},
};

static void write_time(struct str *out, int64_t ms)
{
    str_printf(out, ms == INT64_MAX ? " -" : " %lld", (long long)ms);
}

static void write_key(struct str *out, const char *key)
{
    str_printf(out, " %s", key ? key : "-");
}

/* Adds a key; false: the command is another one. */
static bool add(struct queue *queue, const char *command)
{
    char key[16] = "", lane = 0;
    long long ms = 0;
    if (sscanf(command, " %15[a-z]%c%lld", key, &lane, &ms) != 3 || (lane != '@' && lane != '~'))
        return false;
    queue_add(queue, key, lane == '@' ? QUEUE_URGENT : QUEUE_PATIENT, ms);
    return true;
}

static void do_one(struct queue *queue, const char *command, struct str *out)
{
    char verb[16] = "", key[16] = "";
    long long ms = 0;
    if (add(queue, command))
        return;
    sscanf(command, " %15s", verb);
    if (sscanf(command, " pop %lld", &ms) == 1) {
        write_key(out, queue_pop(queue, QUEUE_URGENT, ms));
        return;
    }
    if (sscanf(command, " last %lld", &ms) == 1) {
        write_key(out, queue_pop(queue, QUEUE_PATIENT, ms));
        return;
    }
    if (strcmp(verb, "due") == 0 || strcmp(verb, "patience") == 0) {
        write_time(out, queue_due(queue, *verb == 'd' ? QUEUE_URGENT : QUEUE_PATIENT));
        return;
    }
    if (strcmp(verb, "length") == 0) {
        assert_int_equal(sscanf(command, " length %lld", &ms), 1);
        str_printf(out, " %zu", queue_length(queue, ms));
        return;
    }
    sscanf(command, " %*s %15s %lld", key, &ms);
    if (strcmp(verb, "done") == 0)
        queue_done(queue, key);
    else if (strcmp(verb, "good") == 0)
        queue_succeeded(queue, key);
    else if (strcmp(verb, "delete_object") == 0)
        queue_forget(queue, key);
    else if (strcmp(verb, "failed") == 0)
        queue_failed(queue, key, ms);
    else
        fail_msg("unknown command %s", verb);
}

static void keys_come_when_they_are_due(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(rows); i++) {
        struct queue *queue = queue_open(FIRST_MS, MAX_MS);
        auto_str struct str out;
        str_init(&out, 1 << 12);
        auto_free char *copy = xstrdup(rows[i].script);
        char *rest = copy, *command;
        while ((command = strsep(&rest, ";")))
            do_one(queue, command, &out);
        if (strcmp(str_text(&out) + 1, rows[i].written) != 0)
            fail_msg("%s: wrote%s, expected %s", rows[i].script, str_text(&out), rows[i].written);
        queue_close(queue);
    }
}

/* ---- beside a naive list ---- */

#define KEYS       12
#define SEEDS      200
#define STEPS      2000
#define NAME_BYTES 24

struct model_key {
    bool waiting, working;
    enum queue_lane lane;
    int64_t at_ms, again_ms;
    uint64_t serial;
    unsigned failures;
};

struct model {
    struct model_key keys[KEYS];
    uint64_t serial;
    int64_t now_ms;
    uint64_t random, seed;
};

static void model_add(struct model *model, struct model_key *key, enum queue_lane lane,
                      int64_t at_ms)
{
    if (key->working) {
        key->again_ms = at_ms < key->again_ms ? at_ms : key->again_ms;
    } else if (!key->waiting || at_ms < key->at_ms || lane != key->lane) {
        key->at_ms = key->waiting && key->at_ms < at_ms ? key->at_ms : at_ms;
        key->waiting = true;
        key->serial = model->serial++;
    }
    key->lane = lane;
}

static int model_first(const struct model *model, enum queue_lane lane)
{
    int first = -1;
    for (int i = 0; i < KEYS; i++) {
        const struct model_key *a = &model->keys[i], *b = &model->keys[first < 0 ? 0 : first];
        if (a->waiting && a->lane == lane &&
            (first < 0 || a->at_ms < b->at_ms || (a->at_ms == b->at_ms && a->serial < b->serial)))
            first = i;
    }
    return first;
}

static int model_pop(struct model *model, enum queue_lane lane)
{
    int first = model_first(model, lane);
    if (first < 0 || model->keys[first].at_ms > model->now_ms)
        return -1;
    model->keys[first].waiting = false;
    model->keys[first].working = true;
    model->keys[first].again_ms = INT64_MAX;
    return first;
}

static void model_end(struct model *model, struct model_key *key)
{
    key->working = false;
    if (key->again_ms != INT64_MAX)
        model_add(model, key, key->lane, key->again_ms);
}

static int64_t model_failed(struct model *model, struct model_key *key)
{
    int64_t delay_ms = FIRST_MS;
    for (unsigned i = 0; i < key->failures; i++)
        delay_ms = delay_ms * 2 > MAX_MS ? MAX_MS : delay_ms * 2;
    key->failures++;
    int64_t at_ms = model->now_ms + delay_ms;
    at_ms = at_ms < key->again_ms ? at_ms : key->again_ms;
    key->again_ms = at_ms;
    model_end(model, key);
    return at_ms;
}

static int below(struct model *model, int bound)
{
    return (int)(backoff_random(&model->random) % (uint64_t)bound);
}

static void key_name(int i, char *out)
{
    snprintf(out, NAME_BYTES, "ns/job-%d", i);
}

static void end_work(struct model *model, struct queue *queue, int i, const char *name)
{
    struct model_key *key = &model->keys[i];
    switch (below(model, 3)) {
    case 0:
        queue_done(queue, name);
        model_end(model, key);
        break;
    case 1:
        queue_succeeded(queue, name);
        key->failures = 0;
        model_end(model, key);
        break;
    case 2:
        assert_int_equal(queue_failed(queue, name, model->now_ms), model_failed(model, key));
        break;
    }
}

static void step(struct model *model, struct queue *queue)
{
    char name[NAME_BYTES];
    int i = below(model, KEYS);
    struct model_key *key = &model->keys[i];
    key_name(i, name);
    model->now_ms += below(model, 60);
    int dice = below(model, 100);
    if (dice < 40) {
        int64_t at_ms = model->now_ms + below(model, 300) - 50;
        enum queue_lane lane = (enum queue_lane)below(model, QUEUE_LANES);
        queue_add(queue, name, lane, at_ms);
        model_add(model, key, lane, at_ms);
    } else if (dice < 65) {
        enum queue_lane lane = (enum queue_lane)below(model, QUEUE_LANES);
        const char *popped = queue_pop(queue, lane, model->now_ms);
        int expected = model_pop(model, lane);
        key_name(expected, name);
        assert_true((popped != NULL) == (expected >= 0));
        if (popped)
            assert_string_equal(popped, name);
    } else if (dice < 95 && key->working) {
        end_work(model, queue, i, name);
    } else if (dice >= 97) {
        queue_forget(queue, name);
        key->waiting = false;
        key->failures = 0;
        key->again_ms = INT64_MAX;
    }
}

static void it_is_a_list_kept_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct model model = {.random = seed, .seed = seed};
        struct queue *queue = queue_open(FIRST_MS, MAX_MS);
        for (int k = 0; k < STEPS; k++) {
            step(&model, queue);
            size_t due = 0;
            for (int i = 0; i < KEYS; i++)
                due += model.keys[i].waiting && model.keys[i].at_ms <= model.now_ms;
            if (queue_length(queue, model.now_ms) != due)
                fail_msg("seed %d, step %d: length differs", (int)seed, k);
            for (int lane = 0; lane < QUEUE_LANES; lane++) {
                int first = model_first(&model, (enum queue_lane)lane);
                if (queue_due(queue, (enum queue_lane)lane) !=
                    (first < 0 ? INT64_MAX : model.keys[first].at_ms))
                    fail_msg("seed %d, step %d: due differs in lane %d", (int)seed, k, lane);
            }
        }
        queue_close(queue);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_come_when_they_are_due),
        cmocka_unit_test(it_is_a_list_kept_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
