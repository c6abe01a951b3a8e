#include "base/environment.h"

#include <stdlib.h>

const char *environment_get(void *ctx, const char *name)
{
    (void)ctx;
    return getenv(name);
}
