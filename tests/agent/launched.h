/* For tests that launch their own program as ranks: where ranks leave word for each other and for
 * the test, and how. */
#ifndef SHOAL_TESTS_AGENT_LAUNCHED_H
#define SHOAL_TESTS_AGENT_LAUNCHED_H

#include "agent/launch/launch.h"

#include <signal.h>
#include <sys/types.h>

enum { LAUNCHED_RANKS = 3 }; /* 6 to 8 of 9 */

extern void (*launched_explain)(const char *why, const char *lines); /* launch_options' */

/* ---- in the test ---- */

struct launched_place {
    char *directory, *file; /* the file is not there yet */
};

struct launched_place launched_place_open(void);
void launched_place_close(struct launched_place *place);
off_t launched_size(const char *path); /* -1: it is not there */

/* Launches `argv[0] rank HOW FILE`, with restarts told; its exit code. */
int launched_run(const char *program, const char *how, const char *file, int max_restarts,
                 struct launch_output_spec output);

/* ---- in a rank ---- */

/* The handler of a rank for the signals that it awaits. */
void launched_on_signal(int number);
int launched_pause_until_signal(void); /* its number */
void launched_leave_word(const char *file, const char *text);
void launched_wait_for_words(const char *file, off_t bytes); /* in all */
int launched_number(const char *variable);                   /* of one that is set */
#endif
