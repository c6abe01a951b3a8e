/* Ranks that say something to people and to their launcher, for tests that launch their own
 * program: `PROGRAM rank HOW FILE`. */
#ifndef SHOAL_TESTS_AGENT_SPEAKING_RANKS_H
#define SHOAL_TESTS_AGENT_SPEAKING_RANKS_H

#include "tests/agent/launched.h"

enum { SPEAKING_RANKS_LINES = 5000 }; /* of who shouts: more than a pipe holds */

/* A rank's main; its exit code. how, where not all do the same, is of rank 6:
 *   speak          a line and a half to stdout, a line to stderr, and it is done
 *   shout          many lines to stderr, then it fails; "shout, killed": by SIGKILL
 *   answer         all shout, and leave word at SIGUSR1
 *   fail, wrong    exit code 5, or that of a wrong configuration
 *   killed         SIGKILL
 *   stuck          no sign of life
 *   peer lost      all tell the loss of a peer; "peer missing": nobody came;
 *                  "peer diverged": training did */
int speaking_ranks_main(const char *how, const char *file);

/* Launches in a process of its own, whose output goes to `out` and `err` in the directory; its exit
 * code. */
int speaking_ranks_launch(const char *program, const struct launched_place *place, const char *how,
                          int max_restarts, struct launch_output_spec output);
#endif
