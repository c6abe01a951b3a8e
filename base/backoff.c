#include "base/backoff.h"

#include <assert.h>

/* splitmix64, Steele, Lea and Flood 2014 */
uint64_t backoff_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

int64_t backoff_most_ms(int64_t first_ms, int64_t max_ms, unsigned failures)
{
    assert(first_ms > 0 && max_ms > 0 && failures > 0);
    int64_t most = first_ms < max_ms ? first_ms : max_ms;
    for (unsigned i = 1; i < failures && most < max_ms; i++)
        most = most > max_ms / 2 ? max_ms : most * 2;
    return most;
}

int64_t backoff_ms(int64_t first_ms, int64_t max_ms, unsigned failures, uint64_t *state)
{
    uint64_t most = (uint64_t)backoff_most_ms(first_ms, max_ms, failures);
    return 1 + (int64_t)(backoff_random(state) % most);
}
