/* Checkpoints of a small model for tests: saved on several ranks (threads), loaded as any other
 * number. A generation g is step 100 g, in DIR/net-<100 g>steps, with values that tell it from
 * others. */
#ifndef SHOAL_TESTS_AGENT_CHECKPOINTS_H
#define SHOAL_TESTS_AGENT_CHECKPOINTS_H

#include "base/error.h"
#include "tests/support_files.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CHECKPOINTS_MAX_RANKS = 5 };

/* Saves a generation on `ranks` ranks; faulty[rank] are theirs (NULL: no faults). All ranks must
 * agree on how it ended; *ret_err is rank 0's. */
int checkpoints_save(const char *dir, int ranks, int generation, struct faulty_files *faulty,
                     struct error *ret_err);

/* Loads a checkpoint as each of `ranks` ranks and returns the first failure. */
int checkpoints_load(const char *path, int ranks, struct error *err);
/* The same, checking every element; returns the generation. */
int checkpoints_check(const char *path, int ranks);
/* The generation of the latest checkpoint, all of it checked. */
int checkpoints_check_latest(const char *dir);

#ifdef __cplusplus
}
#endif
#endif
