#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void format_into(char *out, size_t size, const char *format, va_list args)
{
    int n = vsnprintf(out, size, format, args);
    if (n < 0)
        out[0] = '\0';
}

int error_set(struct error *err, enum error_code code, const char *format, ...)
{
    assert(err && code != ERR_NONE);
    va_list args;
    va_start(args, format);
    format_into(err->msg, sizeof err->msg, format, args);
    va_end(args);
    err->code = code;
    err->shared = false;
    return -1;
}

int error_errno(struct error *err, int errno_value, const char *format, ...)
{
    assert(err);
    char what[384];
    va_list args;
    va_start(args, format);
    format_into(what, sizeof what, format, args);
    va_end(args);
    enum error_code code = ERR_IO;
    if (errno_value == ENOSPC || errno_value == EDQUOT)
        code = ERR_NO_SPACE;
    else if (errno_value == ENOENT)
        code = ERR_NOT_FOUND;
    else if (errno_value == EEXIST)
        code = ERR_EXISTS;
    else if (errno_value == EACCES || errno_value == EROFS)
        code = ERR_FORBIDDEN;
    const char *mend = errno_value == EMFILE ? "; raise the limit (ulimit -n)" : "";
    return error_set(err, code, "%s: %s%s", what, strerror(errno_value), mend);
}

int error_wrap(struct error *err, const char *format, ...)
{
    assert(err && err->code != ERR_NONE);
    char inner[sizeof err->msg], context[256];
    /* The old message is part of the new one, which is written in its place. */
    memcpy(inner, err->msg, sizeof inner);
    va_list args;
    va_start(args, format);
    format_into(context, sizeof context, format, args);
    va_end(args);
    bool shared = err->shared;
    error_set(err, err->code, "%s: %s", context, inner);
    err->shared = shared;
    return -1;
}
