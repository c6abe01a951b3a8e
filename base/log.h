/* One log line per event on stderr: "2026-11-21T11:06:00Z info key: text". The level is the
 * program's only global. Only main, the loops and apply log above debug; libraries return errors.
 * Thread-safe. */
#ifndef SHOAL_BASE_LOG_H
#define SHOAL_BASE_LOG_H

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };

void log_set_level(enum log_level level); /* at start, before other threads; default LOG_INFO */
enum log_level log_get_level(void);       /* for a shared object with a level of its own */
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints on `out` at once. That it cannot be written is a warning, the first time: work goes on. A
 * reader that went away has what it wanted. */
void log_print(FILE *out, const char *text);

#define log_debug(...)   log_write(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)    log_write(LOG_INFO, __VA_ARGS__)
#define log_warning(...) log_write(LOG_WARNING, __VA_ARGS__)
#define log_error(...)   log_write(LOG_ERROR, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
