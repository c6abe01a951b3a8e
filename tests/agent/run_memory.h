/* Memory that outlives the ranks of whole runs (runs.h), as their launchers keep it for them. */
#ifndef SHOAL_TESTS_AGENT_RUN_MEMORY_H
#define SHOAL_TESTS_AGENT_RUN_MEMORY_H

/* fds[size]: of each rank. */
void run_memory_open(int *fds, int size);
void run_memory_close(const int *fds, int size);
#endif
