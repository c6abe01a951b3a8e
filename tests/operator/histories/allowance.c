#include "tests/operator/histories/allowance.h"

#include <assert.h>

static int values_of(const struct allowances *allowances, int kind)
{
    return allowances->is_compared[kind] ? allowances->most[kind] + 1 : 1;
}

static int count_all(const struct allowances *allowances)
{
    int count = 1;
    for (int kind = 0; kind < ALLOWED_KINDS; kind++)
        count *= values_of(allowances, kind);
    return count;
}

/* Whether `less` allows no more than `more` of any kind. */
static bool is_below(const struct allowances *allowances, int less, int more)
{
    for (int kind = 0; kind < ALLOWED_KINDS; kind++) {
        int values = values_of(allowances, kind);
        if (less % values > more % values)
            return false;
        less /= values;
        more /= values;
    }
    return true;
}

void allowances_open(struct allowances *allowances, bool compares)
{
    for (int kind = 0; kind < ALLOWED_KINDS; kind++)
        allowances->is_compared[kind] = false;
    for (int kind = 0; kind < ALLOWED_KINDS; kind++)
        allowances->is_compared[kind] =
            compares && count_all(allowances) * (allowances->most[kind] + 1) <= ALLOWANCES_MAX;
    int count = count_all(allowances);
    for (int more = 0; more < count; more++) {
        allowances->below[more] = 0;
        for (int less = 0; less < count; less++)
            if (is_below(allowances, less, more))
                allowances->below[more] |= (uint64_t)1 << less;
    }
}

int allowances_index(const struct allowances *allowances, const int left[ALLOWED_KINDS])
{
    int index = 0;
    for (int kind = ALLOWED_KINDS; kind-- > 0;) {
        if (!allowances->is_compared[kind])
            continue;
        assert(left[kind] >= 0 && left[kind] <= allowances->most[kind]);
        index = index * values_of(allowances, kind) + left[kind];
    }
    return index;
}
