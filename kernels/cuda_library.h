/* Finds and loads the CUDA backend, a shared object: a program starts on machines without CUDA, and
 * loads it only when asked for a GPU. */
#ifndef SHOAL_KERNELS_CUDA_LIBRARY_H
#define SHOAL_KERNELS_CUDA_LIBRARY_H

#include "kernels/backend.h"

/* The backend's table, loaded once and kept. Search order: the file that the environment variable
 * SHOAL_CUDA_LIBRARY names (if set, no other place); the program's folder; ../lib/shoal beside it.
 * Errors: ERR_UNSUPPORTED with the places searched, or the reason why a file does not load. Any
 * thread. */
int cuda_library(const struct backend **ret_backend, struct error *err);
#endif
