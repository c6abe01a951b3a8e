#include "base/log.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static enum log_level threshold = LOG_INFO;

void log_set_level(enum log_level level)
{
    threshold = level;
}

enum log_level log_get_level(void)
{
    return threshold;
}

void log_write(enum log_level level, const char *format, ...)
{
    static const char *const names[] = {"debug", "info", "warning", "error"};
    if (level < threshold)
        return;
    char line[1024], time[32];
    clock_format_rfc3339(clock_now_ms(), time, sizeof time);
    int n = snprintf(line, sizeof line, "%s %s ", time, names[level]);
    va_list args;
    va_start(args, format);
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, format, args);
    va_end(args);
    size_t length = (size_t)n + (size_t)(m < 0 ? 0 : m);
    if (length > sizeof line - 2)
        length = sizeof line - 2;
    utf8_make_printable(line, length); /* a server's words may be in it */
    line[length++] = '\n';
    /* One write, so that lines of several threads or processes never mix. */
    if (write(STDERR_FILENO, line, length) < 0)
        return;
}

void log_print(FILE *out, const char *text)
{
    bool was_lost = ferror(out) != 0;
    errno = 0;
    bool is_written = fputs(text, out) != EOF && fflush(out) == 0;
    if (!is_written && !was_lost && errno != EPIPE)
        log_warning("standard output: %s: what is printed is lost", strerror(errno));
}
