/* Private to pretrained.c (which tensors a directory has) and pretrained_load.c (their values). */
#ifndef SHOAL_AGENT_CHECKPOINT_PRETRAINED_INTERNAL_H
#define SHOAL_AGENT_CHECKPOINT_PRETRAINED_INTERNAL_H

#include "agent/checkpoint/pretrained.h"
#include "agent/checkpoint/safetensors.h"
#include "base/mem.h"

struct pretrained {
    struct arena *arena;
    const char *dir;
    const char **names; /* of the files, for messages */
    struct safetensors **files;
    int file_count;
};

/* A tensor of a file. */
struct pretrained_location {
    int file;
    const struct safetensors_tensor *tensor; /* NULL: in none of the files */
};

/* By the name in the files. */
struct pretrained_location pretrained_find(const struct pretrained *p, const char *name);
/* By the parameter's name, with all that the files may call it: safetensors' save_model keeps of
 * tied weights the first name in the alphabet alone. */
struct pretrained_location pretrained_find_param(const struct pretrained *p,
                                                 const struct model *model,
                                                 const struct param *param);
#endif
