#include "cli/named_model.h"

#include "agent/config/model_path.h"
#include "base/environment.h"

int named_model(const char *name, struct arena *arena, const char **ret_path, struct error *err)
{
    return resolve_model_path(name, environment_get, NULL, arena, ret_path, err);
}
