#include "operator/local/local_env.h"

#include <assert.h>
#include <string.h>

#include "base/str.h"

enum { EXPANDED_MAX_BYTES = 1 << 20 }; /* beyond what the kernel takes as one argument */

static struct local_env_var *find(const struct local_env *env, const char *name, size_t length)
{
    for (size_t i = 0; i < env->count; i++)
        if (!strncmp(env->vars[i].name, name, length) && !env->vars[i].name[length])
            return &env->vars[i];
    return NULL;
}

void local_env_set(struct local_env *env, const char *name, const char *value)
{
    assert(env->arena);
    struct local_env_var *var = find(env, name, strlen(name));
    if (!var) {
        if (env->count == env->size) {
            struct local_env_var *old = env->vars;
            env->size = env->size ? 2 * env->size : 32;
            env->vars = arena_array(env->arena, struct local_env_var, env->size);
            if (old)
                memcpy(env->vars, old, env->count * sizeof *old);
        }
        var = &env->vars[env->count++];
        var->name = arena_strdup(env->arena, name);
    }
    var->value = arena_strdup(env->arena, value);
}

const char *local_env_get(const struct local_env *env, const char *name)
{
    const struct local_env_var *var = find(env, name, strlen(name));
    return var ? var->value : NULL;
}

const char *local_env_expand(const struct local_env *env, const char *text)
{
    auto_str struct str out;
    str_init(&out, EXPANDED_MAX_BYTES);
    while (*text) {
        size_t plain = strcspn(text, "$");
        str_add_bytes(&out, text, plain);
        text += plain;
        /* Kubernetes' rules: $(NAME) is the variable, $$ a dollar sign, and a reference to an
         * unknown name stays as it is written. */
        const char *close = text[0] && text[1] == '(' ? strchr(text + 2, ')') : NULL;
        if (close) {
            const struct local_env_var *var = find(env, text + 2, (size_t)(close - text - 2));
            if (var)
                str_add(&out, var->value);
            else
                str_add_bytes(&out, text, (size_t)(close + 1 - text));
            text = close + 1;
        } else if (text[0]) {
            str_add_bytes(&out, "$", 1);
            text += text[1] == '$' ? 2 : 1;
        }
    }
    return arena_strdup(env->arena, str_text(&out));
}

const char *const *local_env_strings(const struct local_env *env, const char *last)
{
    const struct local_env_var *replaced = find(env, last, strcspn(last, "="));
    const char **strings = arena_array(env->arena, const char *, env->count + 2);
    size_t count = 0;
    for (const struct local_env_var *var = env->vars; var < env->vars + env->count; var++)
        if (var != replaced)
            strings[count++] = arena_printf(env->arena, "%s=%s", var->name, var->value);
    strings[count] = last;
    return strings;
}
