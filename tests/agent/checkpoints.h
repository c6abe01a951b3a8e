/* Checkpoints of a small model for tests: saved on several ranks (threads), loaded as any other
 * number. A generation g is step 100 g, in DIR/net-<100 g>steps, with values that tell it from
 * others; the model in fp32, its state in bf16. */
#ifndef SHOAL_TESTS_AGENT_CHECKPOINTS_H
#define SHOAL_TESTS_AGENT_CHECKPOINTS_H

#include "base/error.h"
#include "kernels/dtype.h"
#include "tests/support_files.h"

enum { CHECKPOINTS_MAX_RANKS = 5 };

/* Saves a generation on `ranks` ranks; faulty[rank] are theirs (NULL: no faults). All ranks must
 * agree on how it ended; *ret_err is rank 0's. */
int checkpoints_save(const char *dir, int ranks, int generation, struct faulty_files *faulty,
                     struct error *ret_err);

/* Loads a checkpoint as each of `ranks` ranks and returns the first failure. */
int checkpoints_load(const char *path, int ranks, struct error *err);
/* The same, checking every element, in the dtype it was saved in and in the other; returns the
 * generation. */
int checkpoints_check(const char *path, int ranks);
/* The generation of the latest checkpoint, all of it checked. */
int checkpoints_check_latest(const char *dir);

/* A checkpoint once more, as one rank saves it whose numbers are of this dtype. */
void checkpoints_copy(const char *path, const char *dir, const char *name, enum dtype dtype);
/* That two checkpoints have the same tensors with the same numbers, whatever their dtypes. */
void checkpoints_assert_same(const char *a, const char *b);
#endif
