/* What processes may send to rank 0's rendezvous, and rank 0 to them, without the sockets. An input
 * is a byte that says whether the run has a secret, then messages, each after a byte that says
 * which connection it came over. Whatever they are: at most one connection has a rank, only those
 * that may do join, and every answer is a text that ends. */
#include "tests/fuzz/fuzz.h"

#include "agent/comm/rendezvous_proof.h"
#include "agent/comm/rendezvous_round.h"
#include "agent/comm/rendezvous_waits.h"
#include "agent/comm/store_table.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

enum { SIZE = 3, CONNECTIONS = 4, WAITS = 4 };

static const char nonce[RENDEZVOUS_NONCE_BYTES] = "00112233445566778899aabbccddeeff";

struct server {
    struct rendezvous_round *round;
    struct rendezvous_waits *waits;
    struct store_table *table; /* NULL until it is needed: it is large */
    int ranks[CONNECTIONS];    /* -1: has not joined */
};

static void leave(struct server *s, int connection)
{
    rendezvous_waits_drop(s->waits, connection);
    if (s->ranks[connection] >= 0)
        rendezvous_round_leave(s->round, s->ranks[connection]);
    s->ranks[connection] = -1;
}

static void join(struct server *s, int connection, const struct wire_message *m)
{
    char text[STORE_VALUE_MAX];
    int before = rendezvous_round_joined(s->round);
    enum rendezvous_answer answer = rendezvous_round_join(s->round, m, nonce, "127.0.0.1", text);
    assert(memchr(text, '\0', sizeof text));
    bool has_joined = answer == RENDEZVOUS_JOINED || answer == RENDEZVOUS_COMPLETE;
    assert((text[0] != '\0') == (answer == RENDEZVOUS_AGAIN || answer == RENDEZVOUS_REFUSED));
    assert(rendezvous_round_joined(s->round) == before + has_joined);
    if (!has_joined)
        return;
    assert(m->number >= 0 && m->number < SIZE && m->size == SIZE && strcmp(m->text, "job") == 0);
    for (int i = 0; i < CONNECTIONS; i++)
        assert(s->ranks[i] != m->number);
    s->ranks[connection] = m->number;
    assert((answer == RENDEZVOUS_COMPLETE) == rendezvous_round_has_begun(s->round));
}

static void set(struct server *s, const struct wire_message *m)
{
    struct rendezvous_wait wait;
    struct error err = {.code = ERR_NONE};
    if (!s->table)
        s->table = store_table_open();
    if (store_table_set(s->table, m->key, m->text, &err) < 0) {
        assert(err.code != ERR_NONE && err.msg[0]);
        return;
    }
    assert(strcmp(store_table_get(s->table, m->key), m->text) == 0);
    while (rendezvous_waits_take(s->waits, m->key, &wait))
        assert(wait.fd >= 0 && wait.fd < CONNECTIONS && s->ranks[wait.fd] >= 0);
}

static void get(struct server *s, int connection, const struct wire_message *m)
{
    struct rendezvous_wait wait = {
        .fd = connection, .request = m->number, .deadline_ms = (int64_t)m->size};
    memcpy(wait.key, m->key, sizeof wait.key);
    if (!s->table || !store_table_get(s->table, m->key))
        rendezvous_waits_add(s->waits, &wait);
    assert(rendezvous_waits_next_ms(s->waits) <= INT64_MAX);
}

static void handle(struct server *s, int connection, const struct wire_message *m)
{
    char missing[STORE_VALUE_MAX];
    struct error err;
    if (wire_check(m, WIRE_FROM_SERVER, &err) == 0)
        assert(strlen(m->text) < STORE_VALUE_MAX &&
               (m->type != WIRE_REPLY || (m->size >= ERR_NONE && m->size <= ERR_DIVERGED)));
    if (wire_check(m, WIRE_FROM_RANK, &err) < 0) {
        assert(err.code == ERR_INPUT && err.msg[0]);
        leave(s, connection);
    } else if ((s->ranks[connection] < 0) != (m->type == WIRE_JOIN)) {
        leave(s, connection);
    } else if (m->type == WIRE_JOIN) {
        join(s, connection, m);
    } else if (m->type == WIRE_SET) {
        set(s, m);
    } else if (m->type == WIRE_GET) {
        get(s, connection, m);
    } else if (m->type == WIRE_FAILED) {
        rendezvous_round_end(s->round);
    } else if (m->type == WIRE_GOODBYE) {
        leave(s, connection);
    }
    rendezvous_round_describe(s->round, missing);
    assert(memchr(missing, '\0', sizeof missing));
    assert(rendezvous_round_joined(s->round) >= 0 && rendezvous_round_joined(s->round) <= SIZE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct rendezvous_round_options options = {
        .size = SIZE, .job_id = "job", .secret = size && data[0] & 1 ? "of this run" : ""};
    struct server s = {.round = rendezvous_round_open(&options),
                       .waits = rendezvous_waits_open(WAITS)};
    struct wire_message message;
    for (int i = 0; i < CONNECTIONS; i++)
        s.ranks[i] = -1;
    for (size_t at = 1; at + 1 + sizeof message <= size; at += 1 + sizeof message) {
        memcpy(&message, data + at + 1, sizeof message);
        handle(&s, data[at] % CONNECTIONS, &message);
    }
    rendezvous_round_close(s.round);
    rendezvous_waits_close(s.waits);
    store_table_close(s.table);
    return 0;
}
