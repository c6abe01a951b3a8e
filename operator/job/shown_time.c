#include "operator/job/shown_time.h"

#include <string.h>

struct shown_time shown_time_open(const struct goodput *account, int64_t created_ms, int64_t now_ms)
{
    const struct goodput now = goodput_shown(account, created_ms, now_ms);
    struct shown_time shown = {.account = *account, .created_ms = created_ms};
    memcpy(shown.ms, now.ms, sizeof shown.ms);
    return shown;
}

static int64_t sum_of(const int64_t ms[GOODPUT_KINDS])
{
    int64_t sum_ms = 0;
    for (int k = 0; k < GOODPUT_KINDS; k++)
        sum_ms += ms[k];
    return sum_ms;
}

/* How much is shown that the account does not have yet. */
static int64_t ahead_ms(const struct shown_time *shown)
{
    return sum_of(shown->ms) - goodput_sum_ms(&shown->account);
}

static void add(struct shown_time *shown, int kind, int64_t ms, int64_t *added_ms)
{
    shown->ms[kind] += ms;
    added_ms[kind] += ms;
}

void shown_time_follow(struct shown_time *shown, const struct goodput *account, int64_t *added_ms)
{
    int64_t more_ms[GOODPUT_KINDS], ahead = ahead_ms(shown);
    /* What was shown of the kind that went on is most likely that. */
    for (int k = 0; k < GOODPUT_KINDS; k++) {
        more_ms[k] = account->ms[k] - shown->account.ms[k];
        more_ms[k] = more_ms[k] > 0 ? more_ms[k] : 0;
    }
    int went_on = shown->account.now;
    int64_t same_ms = ahead < more_ms[went_on] ? ahead : more_ms[went_on];
    same_ms = went_on == GOODPUT_INSIDE || same_ms < 0 ? 0 : same_ms;
    more_ms[went_on] -= same_ms;
    int64_t room_ms = sum_of(more_ms) - (ahead - same_ms), all_ms = sum_of(more_ms);
    for (int k = 0; k < GOODPUT_KINDS; k++) {
        if (room_ms < all_ms) /* the others are of time that is shown otherwise */
            more_ms[k] =
                room_ms <= 0 ? 0 : (int64_t)((double)more_ms[k] * (double)room_ms / (double)all_ms);
        add(shown, k, more_ms[k], added_ms);
    }
    shown->account = *account;
}

void shown_time_go_on(struct shown_time *shown, int64_t now_ms, int64_t *added_ms)
{
    int64_t open_ms = goodput_open_ms(&shown->account, shown->created_ms, now_ms);
    int64_t more_ms = open_ms - ahead_ms(shown);
    if (open_ms > 0 && more_ms > 0)
        add(shown, shown->account.now, more_ms, added_ms);
}
