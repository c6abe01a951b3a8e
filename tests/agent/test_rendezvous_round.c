/* The rendezvous without its sockets: which messages are taken, and what a process that asks to
 * join is told. */
#include "agent/comm/rendezvous_round.h"

#include "agent/comm/rendezvous_proof.h"
#include "base/mem.h"
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

static void test_messages_that_are_refused(void **state)
{
    (void)state;
    static const struct {
        enum wire_sender sender;
        uint32_t magic;
        int32_t type, size;
        const char *expected; /* NULL: it is taken */
    } rows[] = {
        {WIRE_FROM_RANK, WIRE_MAGIC, WIRE_JOIN, 2, NULL},
        {WIRE_FROM_RANK, WIRE_MAGIC, WIRE_BEAT, 0, NULL},
        {WIRE_FROM_SERVER, WIRE_MAGIC, WIRE_BEAT, 0, NULL},
        {WIRE_FROM_SERVER, WIRE_MAGIC, WIRE_REPLY, ERR_DIVERGED, NULL},
        {WIRE_FROM_RANK, 0x20544547, WIRE_JOIN, 2, "no shoal-agent of this version"}, /* "GET " */
        {WIRE_FROM_RANK, WIRE_MAGIC, -1, 0, "unexpected message of type -1"},
        {WIRE_FROM_RANK, WIRE_MAGIC, WIRE_GOODBYE + 1, 0, "unexpected message of type 13"},
        {WIRE_FROM_RANK, WIRE_MAGIC, INT32_MIN, 0, "unexpected message of type"},
        {WIRE_FROM_RANK, WIRE_MAGIC, WIRE_WELCOME, 0, "unexpected message of type 2"},
        {WIRE_FROM_SERVER, WIRE_MAGIC, WIRE_SET, 0, "unexpected message of type 5"},
        {WIRE_FROM_SERVER, WIRE_MAGIC, WIRE_REPLY, -1, "unknown error code -1"},
        {WIRE_FROM_SERVER, WIRE_MAGIC, WIRE_REPLY, ERR_DIVERGED + 1, "unknown error code"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct error err;
        const struct wire_message m = {
            .magic = rows[i].magic, .type = rows[i].type, .size = rows[i].size};
        int result = wire_check(&m, rows[i].sender, &err);
        if (rows[i].expected)
            assert_fails(result, &err, ERR_INPUT, rows[i].expected);
        else
            assert_ok(result, &err);
    }
}

static void test_a_text_without_an_end_is_refused(void **state)
{
    (void)state;
    struct wire_message m = {.magic = WIRE_MAGIC, .type = WIRE_SET};
    struct error err;
    memset(m.key, 'k', sizeof m.key);
    assert_fails(wire_check(&m, WIRE_FROM_RANK, &err), &err, ERR_INPUT, "does not end");
    m.key[STORE_KEY_MAX - 1] = '\0';
    assert_ok(wire_check(&m, WIRE_FROM_RANK, &err), &err);
    memset(m.text, 't', sizeof m.text);
    assert_fails(wire_check(&m, WIRE_FROM_RANK, &err), &err, ERR_INPUT, "does not end");
}

/* ---- joining; "10.0.0.N" is where the row's process comes from ---- */

enum { HAS_PROOF = 1, ENDS_FIRST = 2, REFUSES_FIRST = 4, LEAVES_FIRST = 8, HEARD_FIRST = 16 };

struct row {
    int rank, size;
    const char *job_id;
    int flags; /* what happens before: the round ends, refuses all, the rank leaves or is heard */
    enum rendezvous_answer answer;
    const char *text; /* a part of it */
};

static void join_all(const struct row *rows, size_t count)
{
    static const char nonce[] = "00112233445566778899aabbccddeeff";
    struct rendezvous_round *round = rendezvous_round_open(
        &(struct rendezvous_round_options){.size = 2, .job_id = "job", .secret = "secret"});
    for (size_t i = 0; i < count; i++) {
        char host[STORE_HOST_MAX], text[STORE_VALUE_MAX];
        struct wire_message join = {.number = rows[i].rank, .size = rows[i].size};
        snprintf(host, sizeof host, "10.0.0.%zu", i);
        snprintf(join.text, sizeof join.text, "%s", rows[i].job_id);
        if (rows[i].flags & HAS_PROOF)
            rendezvous_prove("secret", nonce, join.number, join.size, join.text, join.key);
        if (rows[i].flags & LEAVES_FIRST)
            rendezvous_round_leave(round, rows[i].rank);
        if (rows[i].flags & HEARD_FIRST)
            rendezvous_round_hear(round, rows[i].rank);
        if (rows[i].flags & ENDS_FIRST)
            assert_true(rendezvous_round_end(round));
        if (rows[i].flags & REFUSES_FIRST)
            rendezvous_round_refuse(round, "poll: Cannot allocate memory");
        assert_int_equal(rendezvous_round_join(round, &join, nonce, host, text), rows[i].answer);
        if (!strstr(text, rows[i].text) || (text[0] && !rows[i].text[0]))
            fail_msg("row %zu: \"%s\" is not: %s", i, text, rows[i].text);
    }
    rendezvous_round_close(round);
}

static void test_a_round_begins_when_all_are_here(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {1, 2, "job", 0, RENDEZVOUS_HANG_UP, ""},
        {1, 2, "other", HAS_PROOF, RENDEZVOUS_AGAIN, "of another job than \"other\""},
        {1, 2, "job", HAS_PROOF, RENDEZVOUS_JOINED, ""},
        {1, 2, "job", HAS_PROOF | LEAVES_FIRST, RENDEZVOUS_JOINED, ""},
        {0, 2, "job", HAS_PROOF, RENDEZVOUS_COMPLETE, ""},
        {0, 2, "job", HAS_PROOF, RENDEZVOUS_AGAIN, "an earlier round"},
        {0, 9, "job", HAS_PROOF | ENDS_FIRST, RENDEZVOUS_AGAIN, "an earlier round"},
    };
    join_all(rows, array_length(rows));
}

/* Its machine died: nothing closes the connection until it has been silent for long. */
static void test_who_comes_in_the_place_of_a_dead_process_joins(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {1, 2, "job", HAS_PROOF, RENDEZVOUS_JOINED, ""},
        {1, 2, "job", HAS_PROOF, RENDEZVOUS_AGAIN, "rank 1 is here already, from 10.0.0.0"},
        {1, 2, "job", HAS_PROOF, RENDEZVOUS_AGAIN, "rank 1 is here already, from 10.0.0.0"},
        {1, 2, "job", HAS_PROOF | LEAVES_FIRST, RENDEZVOUS_JOINED, ""},
        {1, 2, "job", HAS_PROOF | HEARD_FIRST, RENDEZVOUS_AGAIN, "from 10.0.0.3"},
        {0, 2, "job", HAS_PROOF, RENDEZVOUS_COMPLETE, ""},
    };
    join_all(rows, array_length(rows));
}

static void test_a_contradiction_is_told_to_all_who_come_later(void **state)
{
    (void)state;
    static const struct row size[] = {
        {0, 2, "job", HAS_PROOF, RENDEZVOUS_JOINED, ""},
        {1, 3, "job", HAS_PROOF, RENDEZVOUS_REFUSED,
         "rank 1 at 10.0.0.1 says the job has 3 ranks, rank 0 says 2"},
        {1, 2, "job", HAS_PROOF, RENDEZVOUS_REFUSED, "rank 1 at 10.0.0.1"},
        {1, 2, "job", 0, RENDEZVOUS_HANG_UP, ""},
    };
    static const struct row same[] = {
        {1, 2, "job", HAS_PROOF, RENDEZVOUS_JOINED, ""},
        {1, 2, "job", HAS_PROOF | HEARD_FIRST, RENDEZVOUS_AGAIN, "rank 1 is here already"},
        {1, 2, "job", HAS_PROOF, RENDEZVOUS_AGAIN, "rank 1 is here already, from 10.0.0.0"},
        {1, 2, "job", HAS_PROOF | HEARD_FIRST, RENDEZVOUS_REFUSED,
         "two processes say they are rank 1: one at 10.0.0.0, one at 10.0.0.3"},
    };
    static const struct row out[] = {
        {-1, 2, "job", HAS_PROOF, RENDEZVOUS_REFUSED, "rank -1 at 10.0.0.0"},
        {2, 2, "job", HAS_PROOF, RENDEZVOUS_REFUSED, "rank -1 at 10.0.0.0"},
    };
    static const struct row broken[] = {
        {0, 2, "job", HAS_PROOF, RENDEZVOUS_JOINED, ""},
        {1, 2, "job", HAS_PROOF | REFUSES_FIRST, RENDEZVOUS_REFUSED, "Cannot allocate memory"},
    };
    join_all(size, array_length(size));
    join_all(same, array_length(same));
    join_all(out, array_length(out));
    join_all(broken, array_length(broken));
}

static void test_who_is_missing_is_described(void **state)
{
    (void)state;
    struct rendezvous_round *round = rendezvous_round_open(
        &(struct rendezvous_round_options){.size = 900, .job_id = "", .secret = ""});
    const struct wire_message join = {.number = 1, .size = 900};
    char text[STORE_VALUE_MAX];
    assert_int_equal(rendezvous_round_join(round, &join, "", "", text), RENDEZVOUS_JOINED);
    rendezvous_round_describe(round, text);
    assert_non_null(strstr(text, "1 of 900 ranks are here; missing: 0 2 3 4"));
    assert_true(rendezvous_round_end(round));
    assert_false(rendezvous_round_end(round));
    rendezvous_round_close(round);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_that_are_refused),
        cmocka_unit_test(test_a_text_without_an_end_is_refused),
        cmocka_unit_test(test_a_round_begins_when_all_are_here),
        cmocka_unit_test(test_who_comes_in_the_place_of_a_dead_process_joins),
        cmocka_unit_test(test_a_contradiction_is_told_to_all_who_come_later),
        cmocka_unit_test(test_who_is_missing_is_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
