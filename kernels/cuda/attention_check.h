/* Whether what a kernel of a library wrote is what our own writes: the library's results are kept,
 * ours overwrite them, the two are compared on the device, and the library's are put back if they
 * are near. For the first use of a plan. What is done here is in no graph of ops, takes memory of
 * its own for that time, and waits for the stream. */
#ifndef SHOAL_KERNELS_CUDA_ATTENTION_CHECK_H
#define SHOAL_KERNELS_CUDA_ATTENTION_CHECK_H

#include "kernels/cuda/cuda.h"
#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor that an op writes. */
struct attention_result {
    const char *name; /* "dq" */
    enum dtype t;
    void *x;
    int64_t rows, width, stride; /* elements */
};

enum { ATTENTION_CHECK_RESULTS = 3 };
struct attention_check {
    struct stream *stream;
    struct cuda_graph *graph; /* that takes the stream's ops else; NULL: none */
    struct attention_result results[ATTENTION_CHECK_RESULTS];
    int count;
    char *kept; /* the library's results, dense, one behind the other; 256-byte aligned each */
    size_t at[ATTENTION_CHECK_RESULTS];
    float *distances; /* of each row: the square of the distance, and of ours */
    int64_t rows;     /* of all results */
    size_t room;      /* bytes that all this takes */
};

/* Keeps the results that are there. False: there is no memory for it (check->room), and nothing is
 * changed. */
bool attention_check_open(struct attention_check *check, struct stream *s,
                          const struct attention_result *results, int count);

enum attention_verdict {
    ATTENTION_NEAR,    /* the library's results are there again */
    ATTENTION_FAR,     /* ours are there */
    ATTENTION_UNKNOWN, /* ours are no finite numbers, or the stream has failed; the library's are
                          there */
};
/* Compares them with what ours wrote, queued since. ret_what: of FAR, which result and how far, for
 * a message. */
enum { ATTENTION_CHECK_TEXT = 96 };
enum attention_verdict attention_check_close(struct attention_check *check,
                                             char ret_what[ATTENTION_CHECK_TEXT]);

#ifdef __cplusplus
}
#endif
#endif
