/* For tests of cuDNN's attention: a world on a device for which attention and the emulated cuDNN
 * are set, and what cuDNN was given to run there. */
#ifndef SHOAL_TESTS_KERNELS_CUDNN_WORLD_H
#define SHOAL_TESTS_KERNELS_CUDNN_WORLD_H

#include "tests/kernels/attention_rows.h"

/* attention: as SHOAL_ATTENTION, emulation: as SHOAL_EMULATION names them; NULL: as they are. Ends
 * with cudnn_world_close, which unsets both. */
struct world *cudnn_world_open(const char *attention, const char *emulation);
void cudnn_world_close(struct world *world);

/* Plans that the emulated cuDNN has been given to run; -1: it is a real one, or there is none. */
int64_t cudnn_world_runs(void);

/* Shapes that attention_rows have not. */
enum { CUDNN_WORLD_ROWS = 2 };
extern const struct attention_row cudnn_world_rows[CUDNN_WORLD_ROWS];

/* bf16 is run twice, forward and backward, by cuDNN if with_cudnn; fp32 is never cuDNN's. */
void cudnn_world_check(struct world *world, const struct attention_row *row, bool with_cudnn);

void cudnn_world_told_once(const char *text, const char *line);
#endif
