/* What this process finds of GPUs and of their libraries, for people: read without opening a
 * device. Where training can go on without something, that is no error here. */
#ifndef SHOAL_KERNELS_GPU_SURVEY_H
#define SHOAL_KERNELS_GPU_SURVEY_H

#include "base/error.h"
#include "base/library.h"
#include "kernels/device.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GPU_SURVEY_GPUS = 64, GPU_SURVEY_LIBRARIES = 4 };

struct gpu_facts {
    char name[128];             /* CUDA's; that of a MIG slice has " MIG " in it */
    char pci[DEVICE_PCI_BYTES]; /* see device_pci(); "": not known */
    int compute_capability;     /* 10 major + minor */
    int64_t memory_bytes;       /* in all */
    bool has_ecc;               /* it is on */
    uint64_t peers;             /* bit i: it reads GPU i's memory without the host */
};

struct gpu_survey {
    char backend_file[256]; /* the CUDA backend's */
    int driver_cuda;        /* the newest CUDA that the driver serves: 13000; 0: no driver */
    int backend_cuda;       /* the CUDA that the backend was built with */
    struct gpu_facts gpu[GPU_SURVEY_GPUS];
    int gpus;
    struct error no_gpus;                               /* why there are none, if so */
    struct library_facts library[GPU_SURVEY_LIBRARIES]; /* those that the backend opens */
    int libraries;
};

/* Fills *ret. Errors: there is no CUDA backend (cuda_library()'s). */
int gpu_survey(struct gpu_survey *ret, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
