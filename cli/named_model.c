#include "cli/named_model.h"

#include "agent/config/model_path.h"

#include <stdlib.h>

static const char *environment(void *ctx, const char *name)
{
    (void)ctx;
    return getenv(name);
}

int named_model(const char *name, struct arena *arena, const char **ret_path, struct error *err)
{
    return resolve_model_path(name, environment, NULL, arena, ret_path, err);
}
