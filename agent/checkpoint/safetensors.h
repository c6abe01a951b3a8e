/* The safetensors format (https://github.com/huggingface/safetensors): a u64 header length, a JSON
 * header with each tensor's dtype, shape and byte range, then the data. The reader believes nothing
 * the header says before it has checked it; the writer's side is a pure layout, the bytes are
 * written by whoever has them. Knows no models and no ranks. */
#ifndef SHOAL_AGENT_CHECKPOINT_SAFETENSORS_H
#define SHOAL_AGENT_CHECKPOINT_SAFETENSORS_H

#include "base/error.h"
#include "base/mem.h"

#include <stddef.h>
#include <stdint.h>

enum {
    SAFETENSORS_MAX_DIMS = 8,
    SAFETENSORS_MAX_NAME_BYTES = 512,
    SAFETENSORS_MAX_HEADER_BYTES = 100 * 1000 * 1000, /* the reference implementation's cap */
};

enum safetensors_dtype {
    SAFETENSORS_F64,
    SAFETENSORS_I64,
    SAFETENSORS_U64,
    SAFETENSORS_F32,
    SAFETENSORS_I32,
    SAFETENSORS_U32,
    SAFETENSORS_F16,
    SAFETENSORS_BF16,
    SAFETENSORS_I16,
    SAFETENSORS_U16,
    SAFETENSORS_I8,
    SAFETENSORS_U8,
    SAFETENSORS_BOOL,
};
const char *safetensors_dtype_name(enum safetensors_dtype dtype); /* "F32" */
int safetensors_dtype_bytes(enum safetensors_dtype dtype);        /* of one element */

struct safetensors_tensor {
    const char *name;
    enum safetensors_dtype dtype;
    int dims; /* 0: a scalar */
    int64_t shape[SAFETENSORS_MAX_DIMS];
    int64_t count;      /* elements; 0 is legal */
    int64_t data_begin; /* first byte within the data part */
};

/* A "__metadata__" entry. */
struct safetensors_metadata {
    const char *key, *value;
};

/* ---- reading ---- */

struct safetensors_header {
    struct safetensors_tensor *tensors; /* ordered by name */
    int tensor_count;
    struct safetensors_metadata *metadata;
    int metadata_count;
    int64_t header_bytes; /* the 8 bytes of length included: where the data begins */
};

/* The first step of safetensors_parse, for who has yet to read the header: its length, the 8 bytes
 * of length included. `size` bytes of the file are at `bytes`; 8 are enough. */
int safetensors_header_bytes(const char *name, const uint8_t *bytes, size_t size,
                             int64_t file_bytes, int64_t *ret_bytes, struct error *err);

/* Checks and decodes the first bytes of a file of `file_bytes` bytes; `size` of them are at
 * `bytes`, at least the whole header. All memory from `arena`. Errors: ERR_INPUT naming the file,
 * the tensor and the numbers that do not fit. */
int safetensors_parse(struct arena *arena, const char *name, const uint8_t *bytes, size_t size,
                      int64_t file_bytes, struct safetensors_header *ret_header, struct error *err);

/* NULL if there is none of that name. */
const struct safetensors_tensor *safetensors_find(const struct safetensors_header *header,
                                                  const char *name);
const char *safetensors_get_metadata(const struct safetensors_header *header, const char *key);

/* An open file. */
struct safetensors;
int safetensors_open(const char *path, struct safetensors **ret_file, struct error *err);
void safetensors_close(struct safetensors *file); /* NULL-safe */
const struct safetensors_header *safetensors_header(const struct safetensors *file);

/* Reads elements first .. first + count - 1 (row-major) of a tensor of the file as they are stored,
 * little-endian. out has room for count elements. The range must lie within the tensor. */
int safetensors_read(const struct safetensors *file, const struct safetensors_tensor *tensor,
                     int64_t first, int64_t count, void *out, struct error *err);

/* The xxh64 (seed 0) of the header part as it is in the file, and of the whole file. */
uint64_t safetensors_hash_header(const struct safetensors *file);
int safetensors_hash(const struct safetensors *file, uint64_t *ret_xxh64, struct error *err);

/* ---- writing ---- */

/* What a file begins with, and in which order the tensors' data follows without gaps. */
struct safetensors_layout {
    const char *header; /* length and text, header_bytes of them; a multiple of 8 */
    int64_t header_bytes;
    const struct safetensors_tensor **order; /* [count] */
    int count;
    int64_t file_bytes;
};

/* Lays out a file: the widest dtype first, then by name; the header padded with spaces;
 * "format": "pt" is put before `metadata`. Sets data_begin and count of `tensors`, whose names must
 * differ and may not be "__metadata__". Memory from `arena`; the tensors must
 * outlive the layout. */
void safetensors_lay_out(struct arena *arena, struct safetensors_tensor *tensors, int count,
                         const struct safetensors_metadata *metadata, int metadata_count,
                         struct safetensors_layout *ret_layout);
#endif
