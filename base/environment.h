/* The environment as a function, so that what reads it is pure and tests give their own. */
#ifndef SHOAL_BASE_ENVIRONMENT_H
#define SHOAL_BASE_ENVIRONMENT_H

/* The value of the variable; NULL: it is not set. */
typedef const char *getenv_fn(void *ctx, const char *name);

/* The process's own, as a getenv_fn. */
const char *environment_get(void *ctx, const char *name);

#endif
