/* The list-and-watch machine by a script: commands, separated by ';', and what the machine says
 * after each.
 *
 *   next             what it wants
 *   page NAMES VERSION [TOKEN]  a page of the list; names joined by ',', - for none
 *   head [TOKEN]     what stands before the items of the next answer
 *   item JSON        an item of the next answer
 *   answer JSON      another answer to a list
 *   list HOW [MS]    the list failed: gone, timeout, missing, input, forbidden, large; the server
 *                    asks for MS of rest
 *   event TYPE NAME VERSION
 *   line TEXT        another line
 *   error CODE       an ERROR event
 *   end HOW [MS]     the stream ended: good, or as for list
 *   relist MS        something was changed this long ago
 *   anew             what the stream began with was of the past
 *   wait             a time passes that any backoff has
 *   tick MS          this time passes
 *   synced, failing, refused  are said */
#ifndef SHOAL_TESTS_OPERATOR_KUBE_WATCH_SCRIPT_H
#define SHOAL_TESTS_OPERATOR_KUBE_WATCH_SCRIPT_H

#include "base/error.h"
#include "base/str.h"

/* its backoff */
#define WATCH_SCRIPT_FIRST_MS 1000
#define WATCH_SCRIPT_MAX_MS   30000

struct watch_script {
    struct watch *watch;
    int64_t now_ms;
    struct str said; /* a space behind each word */
};

void watch_script_open(struct watch_script *s, const char *selector);
void watch_script_close(struct watch_script *s);

/* Fails the test if it has an unknown command. */
void watch_script_do(struct watch_script *s, const char *script);

/* The error of that name, as for `list` and `end`; in *err. */
const struct error *watch_script_failure(const char *how, struct error *err);
#endif
