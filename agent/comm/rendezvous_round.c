#include "agent/comm/rendezvous_round.h"

#include "agent/comm/rendezvous_proof.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct member {
    bool has_joined;
    bool is_claimed; /* a second process says it is this rank */
    bool is_heard;   /* and the first has been heard since */
    char host[STORE_HOST_MAX];
};

struct rendezvous_round {
    struct rendezvous_round_options options; /* texts are copies */
    struct member *members;                  /* [size], by rank */
    int joined;
    int refused; /* connections without a proof, so far */
    bool has_begun, has_ended;
    char contradiction[STORE_VALUE_MAX]; /* between ranks; "": none */
};

struct rendezvous_round *rendezvous_round_open(const struct rendezvous_round_options *options)
{
    struct rendezvous_round *round = xcalloc(1, sizeof *round);
    round->options = (struct rendezvous_round_options){.size = options->size,
                                                       .job_id = xstrdup(options->job_id),
                                                       .secret = xstrdup(options->secret)};
    round->members = xcalloc((size_t)options->size, sizeof *round->members);
    return round;
}

void rendezvous_round_close(struct rendezvous_round *round)
{
    if (!round)
        return;
    free((char *)round->options.job_id);
    free((char *)round->options.secret);
    free(round->members);
    free(round);
}

static bool has_proof(const struct rendezvous_round *round, const struct wire_message *join,
                      const char *nonce)
{
    char expected[RENDEZVOUS_PROOF_BYTES];
    rendezvous_prove(round->options.secret, nonce, join->number, join->size, join->text, expected);
    return !round->options.secret[0] || rendezvous_proof_equal(join->key, expected);
}

/* Rank 0 cannot tell which of two contradicting processes is right: all of them are notified. */
static void find_contradiction(struct rendezvous_round *round, const struct wire_message *join,
                               const char *host)
{
    int size = round->options.size, rank = join->number;
    if (join->size != size || rank < 0 || rank >= size)
        snprintf(round->contradiction, sizeof round->contradiction,
                 "rank %d at %s says the job has %d ranks, rank 0 says %d", rank, host, join->size,
                 size);
    else if (round->members[rank].is_heard)
        snprintf(round->contradiction, sizeof round->contradiction,
                 "two processes say they are rank %d: one at %s, one at %s", rank,
                 round->members[rank].host, host);
}

/* A process without a proof learns nothing, not even the job's id. The contradiction of an earlier
 * pair comes before the state of the round: it is the reason for that state. */
enum rendezvous_answer rendezvous_round_join(struct rendezvous_round *round,
                                             const struct wire_message *join, const char *nonce,
                                             const char *host, char ret_text[STORE_VALUE_MAX])
{
    ret_text[0] = '\0';
    if (!has_proof(round, join, nonce)) {
        round->refused++;
        return RENDEZVOUS_HANG_UP;
    }
    if (strcmp(join->text, round->options.job_id) != 0) {
        snprintf(ret_text, STORE_VALUE_MAX, "this is the rendezvous of another job than \"%.60s\"",
                 join->text);
        return RENDEZVOUS_AGAIN;
    }
    bool is_over = round->has_begun || round->has_ended;
    if (!round->contradiction[0] && is_over) {
        snprintf(ret_text, STORE_VALUE_MAX,
                 "an earlier round of the job is still running or ending");
        return RENDEZVOUS_AGAIN;
    }
    if (!round->contradiction[0])
        find_contradiction(round, join, host);
    if (round->contradiction[0]) {
        round->has_ended = true;
        snprintf(ret_text, STORE_VALUE_MAX, "%s", round->contradiction);
        return RENDEZVOUS_REFUSED;
    }
    struct member *member = &round->members[join->number];
    if (member->has_joined) {
        member->is_claimed = true;
        snprintf(ret_text, STORE_VALUE_MAX, "rank %d is here already, from %s", join->number,
                 member->host);
        return RENDEZVOUS_AGAIN;
    }
    member->has_joined = true;
    snprintf(member->host, sizeof member->host, "%s", host);
    round->has_begun = ++round->joined == round->options.size;
    return round->has_begun ? RENDEZVOUS_COMPLETE : RENDEZVOUS_JOINED;
}

void rendezvous_round_leave(struct rendezvous_round *round, int rank)
{
    round->members[rank] = (struct member){.has_joined = false};
    round->joined--;
}

void rendezvous_round_hear(struct rendezvous_round *round, int rank)
{
    round->members[rank].is_heard = round->members[rank].is_claimed;
}

int rendezvous_round_joined(const struct rendezvous_round *round)
{
    return round->joined;
}

bool rendezvous_round_has_begun(const struct rendezvous_round *round)
{
    return round->has_begun;
}

void rendezvous_round_describe(const struct rendezvous_round *round, char ret_text[STORE_VALUE_MAX])
{
    auto_str struct str text;
    str_init(&text, STORE_VALUE_MAX - 1);
    str_printf(&text, "%d of %d ranks are here", round->joined, round->options.size);
    if (round->refused > 0)
        str_printf(&text, " (%d connections did not know the run's secret)", round->refused);
    str_add(&text, "; missing:");
    for (int rank = 0; rank < round->options.size; rank++)
        if (!round->members[rank].has_joined)
            str_printf(&text, " %d", rank);
    snprintf(ret_text, STORE_VALUE_MAX, "%s", str_text(&text));
}

bool rendezvous_round_end(struct rendezvous_round *round)
{
    bool is_first = !round->has_ended;
    round->has_ended = true;
    return is_first;
}

void rendezvous_round_refuse(struct rendezvous_round *round, const char *reason)
{
    snprintf(round->contradiction, sizeof round->contradiction, "%s", reason);
    round->has_ended = true;
}
