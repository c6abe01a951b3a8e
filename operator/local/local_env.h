/* A container's environment and the $(NAME) references of Kubernetes. Pure: knows names and values,
 * not where they come from. */
#ifndef SHOAL_OPERATOR_LOCAL_LOCAL_ENV_H
#define SHOAL_OPERATOR_LOCAL_LOCAL_ENV_H

#include <stddef.h>

#include "base/mem.h"

struct local_env_var {
    const char *name, *value; /* owned by the arena */
};

/* In order of first setting. Zero it and set the arena to begin. */
struct local_env {
    struct arena *arena; /* everything in it lives there; not owned */
    struct local_env_var *vars;
    size_t count, size; /* in use, allocated */
};

/* Copies both texts; a name that is there already gets the new value in its old place. */
void local_env_set(struct local_env *env, const char *name, const char *value);

/* NULL if the name is not set. */
const char *local_env_get(const struct local_env *env, const char *name);

/* The text with each $(NAME) replaced by its value. "$$" gives "$", so "$$(NAME)" is the text
 * "$(NAME)"; a reference to an unset name and a "$" before anything else stay as they are. The
 * rules of k8s.io/kubernetes third_party/forked/golang/expansion. The result lives in
 * env's arena. */
const char *local_env_expand(const struct local_env *env, const char *text);

/* "NAME=value" for each variable, NULL-terminated: execve's form. Lives in env's arena. `last` is
 * such a text as well, borrowed: it comes last and replaces a variable of its name. */
const char *const *local_env_strings(const struct local_env *env, const char *last);
#endif
