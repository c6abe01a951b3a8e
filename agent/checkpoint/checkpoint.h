/* Checkpoints: what every rank holds, in one new directory that is committed by one rename.
 *
 *   <dir>/<name>/model/shard-00001-model-00001-of-00003.safetensors ...  a file per rank and part
 *   <dir>/<name>/optimizer/...                                           the same
 *   <dir>/<name>/state.json                                              checkpoint_state
 *   <dir>/<name>/agent_config.yaml, config.json                          for people and tools
 *   <dir>/<name>/COMPLETE                                                the manifest, written last
 *   <dir>/<name>/full/, full.safetensors                                 the whole weights, if
 * asked for; by the trainer, later
 *
 * model/ and optimizer/ are what PyTorch's distributed checkpoint reader for Hugging Face files
 * (torch.distributed.checkpoint.hf_storage) reads. Tensors are stored by name and place in the
 * whole tensor, so any number of ranks can load what any other number saved. Knows named ranges of
 * tensors in host memory; not units, optimizers or devices. */
#ifndef SHOAL_AGENT_CHECKPOINT_CHECKPOINT_H
#define SHOAL_AGENT_CHECKPOINT_CHECKPOINT_H

#include "agent/checkpoint/checkpoint_box.h"
#include "agent/checkpoint/checkpoint_state.h"
#include "agent/comm/comm.h"
#include "base/durable.h"
#include "base/error.h"
#include "base/lines.h"

#include <stdbool.h>
#include <stdint.h>

/* Where the trainer puts whole weights: a folder of this name, or a file with ".safetensors". */
#define CHECKPOINT_FULL "full"

/* A run of elements of a tensor. */
struct tensor_range {
    const char *name; /* "fc1.weight"; optimizer state: "fc1.weight.square_avg" */
    int dims;         /* of the whole tensor, at most BOX_MAX_DIMS */
    int64_t shape[BOX_MAX_DIMS];
    int64_t first;    /* the range's first element within the whole tensor, row-major */
    int64_t count;    /* >= 1 */
    enum dtype dtype; /* of data: saved as it is; what was saved in another is converted to it */
    void *data;       /* host, [count]; only read when saving */
};

struct tensor_ranges {
    const struct tensor_range *items; /* each name at most once */
    int count;
};

/* Small files beside the tensors, for people and for tools; checkpoint_load() reads none. */
enum checkpoint_text {
    CHECKPOINT_AGENT_CONFIG, /* agent_config.yaml: the configuration, and where each
                                value is from */
    CHECKPOINT_MODEL_CONFIG, /* config.json, of language models: as Hugging Face has it */
    CHECKPOINT_TEXTS,
};
const char *checkpoint_text_name(enum checkpoint_text text); /* "agent_config.yaml" */

enum checkpoint_part { CHECKPOINT_MODEL, CHECKPOINT_OPTIMIZER, CHECKPOINT_PARTS };

struct checkpoint_save {
    const struct file_ops *files;
    const char *dir;  /* holds the checkpoints; the same on all ranks (a shared file system) */
    const char *name; /* of this one, "mnist_cnn-120steps": no '/' */
    const struct checkpoint_state *state;
    const char *texts[CHECKPOINT_TEXTS]; /* NULL: there is no such file; read on rank 0 */
    /* What this rank writes: together the ranks must give each element exactly once. */
    struct tensor_ranges parts[CHECKPOINT_PARTS];
    bool allow_nonfinite; /* NaN and infinity are saved too */
    struct comm *comm;
    struct stream *stream; /* for the collectives; waited for */
};

/* Writes a checkpoint. Collective. When it returns 0 on any rank, the checkpoint is committed and
 * durable; when it fails, it fails on every rank, with the cause and the rank it came from. A
 * failed save leaves earlier checkpoints as they were and removes what it wrote. The next save
 * removes what a killed process left. A complete checkpoint of the same name is replaced in one
 * step; anything else of that name, and a checkpoint that holds other files too, is ERR_EXISTS.
 * NaN or infinity among the elements of any rank is ERR_DIVERGED unless they are allowed.
 * ret_bytes: of the files with all ranks' tensors, headers included. */
int checkpoint_save(const struct checkpoint_save *save, int64_t *ret_bytes, struct error *err);

/* Removes the oldest complete checkpoints of the directory until `keep` (>= 1) are left, of those
 * up to `step`: later ones were passed over as damaged, and do not count. For one rank. The newest
 * is never touched, nor one that holds other files too. */
int checkpoint_prune(const struct file_ops *files, const char *dir, int64_t step, int keep,
                     struct error *err);

/* A checkpoint that was found. */
struct checkpoint_found {
    char *path; /* the caller frees */
    int64_t step;
};

/* What was passed over, and why: each reason names its path. */
struct checkpoint_skipped {
    struct lines paths, reasons;
};

/* One of a list. */
struct checkpoint_listed {
    const char *path;
    int64_t step;
};

/* All complete checkpoints in `dir`, by steps, those of one step by name; what else looks like one
 * is added to `skipped` (NULL: nobody asks). Memory from `arena`. Errors: no such directory. */
int checkpoint_list(struct arena *arena, const char *dir, struct checkpoint_skipped *skipped,
                    struct checkpoint_listed **ret_found, int *ret_count, struct error *err);

/* The complete checkpoint of the most steps in `dir`, the last by name of several, of those that
 * `run` saved (NULL: anyone) and that come before `before` (NULL: of all), which was found so. Only
 * the manifest decides what is complete; others are added to `skipped` (NULL: nobody asks). Errors:
 * ERR_NOT_FOUND if there is none (or no such directory). */
int checkpoint_find_latest(const char *dir, const char *run, const struct checkpoint_listed *before,
                           struct checkpoint_skipped *skipped, struct checkpoint_found *ret_found,
                           struct error *err);

/* ---- loading: each rank for itself, without collectives ---- */

struct checkpoint;

/* Reads manifest, state and where each tensor lies. Errors name the file: ERR_NOT_FOUND if there is
 * no such directory or no manifest in it, ERR_INPUT if anything is not as the manifest says. */
int checkpoint_open(const char *path, struct checkpoint **ret_checkpoint, struct error *err);
void checkpoint_close(struct checkpoint *checkpoint); /* NULL-safe */
const struct checkpoint_state *checkpoint_get_state(const struct checkpoint *checkpoint);

/* *ret_text: the small file as it was saved, the checkpoint's; NULL: it has none. Errors: ERR_INPUT
 * if it is damaged. */
int checkpoint_read_text(struct checkpoint *checkpoint, enum checkpoint_text text,
                         const char **ret_text, struct error *err);

/* What the tensors of a part were saved in: bf16 if all of them were, else fp32. Errors: those of
 * checkpoint_open(). */
int checkpoint_read_dtype(const struct checkpoint *checkpoint, enum checkpoint_part part,
                          enum dtype *ret_dtype, struct error *err);

/* Fills the data of each range from whichever files have its elements, widened exactly or rounded
 * to nearest where it was saved in another dtype; each file that is read is first verified against
 * its checksum. Errors: ERR_INPUT names the file that is damaged, or the elements that are in no
 * file. It names the element that is NaN or infinite unless those are allowed. ERR_SHAPE names a
 * tensor that has another shape, ERR_CONFIG one that the part does not have. The data is then
 * undefined. */
int checkpoint_load(struct checkpoint *checkpoint, enum checkpoint_part part,
                    const struct tensor_ranges *ranges, bool allow_nonfinite, struct error *err);
#endif
