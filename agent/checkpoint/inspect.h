/* What a checkpoint, a Hugging Face directory, a safetensors file or a directory of checkpoints
 * holds, and whether it is complete and undamaged. Reads; changes nothing. Knows file formats, not
 * models. */
#ifndef SHOAL_AGENT_CHECKPOINT_INSPECT_H
#define SHOAL_AGENT_CHECKPOINT_INSPECT_H

#include "agent/checkpoint/checkpoint_state.h"
#include "agent/checkpoint/safetensors.h"
#include "base/error.h"
#include "base/lines.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum inspect_kind {
    INSPECT_CHECKPOINT, /* checkpoint.h */
    INSPECT_DIRECTORY,  /* several of them */
    INSPECT_PRETRAINED, /* pretrained.h */
    INSPECT_FILE,       /* a safetensors file */
};

struct inspect_file {
    const char *path; /* below the thing's own; "" if that is the file */
    int64_t bytes;
};

struct inspect_tensor {
    const char *part; /* "model", "optimizer"; "" outside checkpoints */
    const char *name;
    enum safetensors_dtype dtype;
    int dims;
    int64_t shape[SAFETENSORS_MAX_DIMS]; /* of the whole tensor */
    int64_t count;                       /* elements that are there; less than the shape's if some
                                            are missing */
    int pieces;                          /* in how many boxes it is stored */
};

struct inspection {
    enum inspect_kind kind;
    struct checkpoint_state state; /* of a checkpoint, where has_state */
    bool has_state;
    int64_t step; /* of a checkpoint */
    struct inspect_file *files;
    int file_count;
    struct inspect_tensor *tensors; /* by part and name */
    int tensor_count, tensor_capacity;
    struct checkpoint_listed *found; /* of a directory: the newest first */
    int found_count;
    struct lines problems;    /* what is missing or damaged; none: all is well */
    struct lines passed_over; /* of a directory: what is no complete checkpoint, as saves that were
                                 killed leave it */
    bool verified;            /* the files were compared with their checksums */
};

/* verified: read all data of checkpoints, compare it with their checksums and look for NaN and
 * infinity; without it only headers and sizes are looked at. Memory from `arena`. What is wrong
 * with the thing becomes a problem. Errors: ERR_NOT_FOUND if there is nothing at `path`, ERR_INPUT
 * if it is none of the kinds. */
int inspect_read(struct arena *arena, const char *path, bool verified,
                 struct inspection *ret_inspection, struct error *err);

/* For people; all_tensors: a line for each, else their number only. */
void inspect_print(const struct inspection *inspection, const char *path, bool all_tensors,
                   struct str *out);
/* As one JSON object, with all tensors. */
void inspect_json(const struct inspection *inspection, const char *path, struct str *out);
#endif
