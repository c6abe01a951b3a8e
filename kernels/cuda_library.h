/* Finds and loads the CUDA backend, a shared object of its own: a program starts on machines
 * without CUDA, and one that never asks for a GPU never loads it. */
#ifndef SHOAL_KERNELS_CUDA_LIBRARY_H
#define SHOAL_KERNELS_CUDA_LIBRARY_H

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The backend's table, loaded once and kept. Looked for in this order: the file that the
 * environment variable SHOAL_CUDA_LIBRARY names (and nowhere else if it is set); the program's
 * folder; ../lib/shoal beside it. Errors: ERR_UNSUPPORTED, naming the places, or what is wrong with
 * the file there. Any thread. */
int cuda_library(const struct backend **ret_backend, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
