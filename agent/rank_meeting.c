#include "agent/rank_meeting.h"

#include "agent/launch/last_words.h"
#include "base/contract.h"
#include "base/log.h"
#include "base/str.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

int rank_meeting_number(const char *variable)
{
    const char *text = getenv(variable);
    int64_t number;
    return text && str_to_i64(text, 0, INT_MAX, &number) ? (int)number : 0;
}

int rank_meeting_open(const struct rendezvous_options *options, bool tells,
                      struct rendezvous **ret_rendezvous, struct error *err)
{
    struct rendezvous_options patient = *options;
    int result = rendezvous_open(options, ret_rendezvous, err);
    if (result && err->code == ERR_TIMEOUT && rank_meeting_number(ENV_ROUNDS_MET)) {
        if (tells)
            log_warning("%s; the ranks have met before: waits on, for %d hours at most", err->msg,
                        RANK_MEETING_PARK_S / 3600);
        patient.join_timeout_ms = RANK_MEETING_PARK_S * 1000;
        result = rendezvous_open(&patient, ret_rendezvous, err);
    }
    if (result == 0)
        last_words_met(LAST_WORDS_NOT_ASKED);
    return result;
}

/* Keys are written once: whoever writes the next one of its number of rounds counts itself. */
static const char *new_launcher(int rounds, int number, char out[STORE_KEY_MAX])
{
    snprintf(out, STORE_KEY_MAX, "launch/new/%d/%d", rounds, number);
    return out;
}

void rank_meeting_announce(struct store *store)
{
    char key[STORE_KEY_MAX];
    struct error err = {.code = ERR_EXISTS};
    int rounds = rank_meeting_number(ENV_ROUNDS_MET);
    if (rank_meeting_number(ENV_IS_NEW) == 0)
        return;
    for (int i = 0; i < RANK_MEETING_NEW_MOST && err.code == ERR_EXISTS; i++)
        if (store->fn->set(store, new_launcher(rounds, i, key), "", &err) == 0)
            return;
}

static int count_new(struct store *store, int rounds)
{
    char key[STORE_KEY_MAX], value[STORE_VALUE_MAX];
    struct error ignored; /* no more have announced themselves */
    int count = 0;
    while (count < RANK_MEETING_NEW_MOST &&
           store->fn->get(store, new_launcher(rounds, count, key), 0, value, &ignored) == 0)
        count++;
    return count;
}

void rank_meeting_ask(struct store *store)
{
    int count = 0, own = rank_meeting_number(ENV_ROUNDS_MET);
    for (int rounds = 0; rounds < own; rounds++)
        count += count_new(store, rounds);
    last_words_met(count);
}
