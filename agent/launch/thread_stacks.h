/* What the threads of a process that stands still do: their call stacks, which each writes itself,
 * or, from outside, what the kernel says of them. */
#ifndef SHOAL_AGENT_LAUNCH_THREAD_STACKS_H
#define SHOAL_AGENT_LAUNCH_THREAD_STACKS_H

#include "base/str.h"

/* Once, before the first of those below, as early as there is one thread. */
void thread_stacks_install(void);

/* Each thread of this process writes its call stack to stderr, one after the other. For one that
 * cannot, the kernel's word. rank: for the lines. From one thread at a time. */
void thread_stacks_print(int rank);

/* Adds a line for each thread of another process of this pod: its name, its state and the function
 * of the kernel that it waits in, and the kernel's stack where that may be read. */
void thread_stacks_describe(int pid, struct str *out);
/* Writes that to stderr, not through the log, whose lines are shorter. rank: for the line above. */
void thread_stacks_show(int rank, int pid);
#endif
