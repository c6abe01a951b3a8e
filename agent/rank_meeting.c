#include "agent/rank_meeting.h"

#include "agent/launch/last_words.h"
#include "base/contract.h"
#include "base/log.h"
#include "base/str.h"

#include <limits.h>
#include <stdlib.h>

static const char new_launcher[] = "launch/new";

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
    if (result && err->code == ERR_TIMEOUT && rank_meeting_number(ENV_HAVE_MET)) {
        if (tells)
            log_warning("%s; the ranks have met before: waits on, for %d hours at most", err->msg,
                        RANK_MEETING_PARK_S / 3600);
        patient.join_timeout_ms = RANK_MEETING_PARK_S * 1000;
        result = rendezvous_open(&patient, ret_rendezvous, err);
    }
    if (result == 0)
        last_words_met(false);
    return result;
}

void rank_meeting_announce(struct store *store)
{
    struct error ignored; /* another one has announced itself already */
    if (getenv(ENV_LAUNCH_ROUNDS) && rank_meeting_number(ENV_LAUNCH_ROUNDS) == 0)
        store->fn->set(store, new_launcher, "", &ignored);
}

void rank_meeting_ask(struct store *store)
{
    char value[STORE_VALUE_MAX];
    struct error ignored; /* nobody has announced itself */
    if (rank_meeting_number(ENV_LAUNCH_ROUNDS) > 0 &&
        store->fn->get(store, new_launcher, 0, value, &ignored) == 0)
        last_words_met(true);
}
