#include "agent/telemetry/time_account.h"

#include "base/contract.h"

const char *time_kind_name(enum time_kind kind)
{
    static const char *const names[TIME_KINDS] = {
        [TIME_INITIALIZATION] = TIME_NAME_INITIALIZATION,
        [TIME_PEER_WAIT] = TIME_NAME_PEER_WAIT,
        [TIME_RESTORE] = TIME_NAME_RESTORE,
        [TIME_DATA] = TIME_NAME_DATA,
        [TIME_STEP] = TIME_NAME_STEP,
        [TIME_LOST_WORK] = TIME_NAME_LOST_WORK,
        [TIME_EVALUATION] = TIME_NAME_EVALUATION,
        [TIME_SAVE] = TIME_NAME_SAVE,
        [TIME_OTHER] = TIME_NAME_OTHER,
    };
    return names[kind];
}

struct time_account time_account_open(int64_t begin_us)
{
    return (struct time_account){.begin_us = begin_us, .until_us = begin_us};
}

void time_account_add(struct time_account *a, enum time_kind kind, int64_t now_us)
{
    if (now_us <= a->until_us)
        return;
    a->us[kind] += now_us - a->until_us;
    a->until_us = now_us;
}

void time_account_fail(struct time_account *a, int64_t now_us)
{
    time_account_add(a, a->going_on, now_us);
}

void time_account_step(struct time_account *a, double data_s, bool done_before, int64_t now_us)
{
    int64_t left_us = now_us > a->until_us ? now_us - a->until_us : 0;
    /* The device's clock measured it: no more than went by on ours. */
    int64_t data_us =
        data_s > 0 ? (data_s * 1e6 < (double)left_us ? (int64_t)(data_s * 1e6) : left_us) : 0;
    time_account_add(a, TIME_DATA, a->until_us + data_us);
    time_account_add(a, done_before ? TIME_LOST_WORK : TIME_STEP, now_us);
}

double time_account_s(const struct time_account *a, enum time_kind kind)
{
    return (double)a->us[kind] / 1e6;
}
