/* All processes below one, as /proc tells of them: what they use, and how much of what they could
 * use the machine lets them have. */
#ifndef SHOAL_TESTS_RUNNER_TREE_H
#define SHOAL_TESTS_RUNNER_TREE_H

#include <stdio.h>
#include <sys/types.h>

struct tree;

struct tree *tree_open(pid_t root); /* which is no part of it */
void tree_close(struct tree *tree);

/* Looks anew, and returns how many processes there are. */
int tree_look(struct tree *tree);
/* Between the last two looks: of the time in which its threads could run, the share in which they
 * did. A thread that waits for a processor or for a disk could; one that sleeps could not. 1 if
 * none could; never 0, so that time goes on. */
double tree_share(const struct tree *tree);
/* Seconds of processors that those which live, and what they have waited for, have used. */
double tree_cpu_s(const struct tree *tree);
void tree_signal(const struct tree *tree, int number);
/* A line a process. */
void tree_print(const struct tree *tree, FILE *out);

#endif
