#include "tests/operator/seed.h"

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>

int64_t seed_asked(void)
{
    const char *text = getenv("SIMULATION_SEED");
    int64_t seed;
    if (!text || !*text)
        return 0;
    if (str_to_i64(text, 1, INT64_MAX, &seed))
        return seed;
    fprintf(stderr,
            "SIMULATION_SEED=%s: must be a whole number from 1 on, as a failing run prints it\n",
            text);
    exit(2);
}
