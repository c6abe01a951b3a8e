/* Private to export.c (tensors, one file) and export_directory.c (a Hugging Face directory). */
#ifndef SHOAL_AGENT_CHECKPOINT_EXPORT_INTERNAL_H
#define SHOAL_AGENT_CHECKPOINT_EXPORT_INTERNAL_H

#include "agent/checkpoint/export.h"

/* What rank 0 writes. Once something failed, the rest does nothing: rank 0 must go on gathering
 * because the others do. On other ranks `file` is always NULL. */
struct export_writer {
    struct durable_file *file; /* the one that is open, or NULL */
    int result;
    struct error err;
};

/* A safetensors file of the tensors first .. first + count - 1, to the open file if there is one.
 * Collective. Fails if a gather does; what cannot be written is the writer's failure. */
int export_write_tensors(const struct export_model *what, int first, int count,
                         struct export_writer *writer, struct error *err);

/* Rank 0's result becomes everyone's. Collective. */
int export_agree(const struct export_model *what, const struct export_writer *writer,
                 struct error *err);
#endif
