/* NVIDIA's shared libraries, found at run time: a build needs only their headers, and a machine
 * only those it uses. They come with CUDA, with Debian's packages or with PyTorch, whose wheels
 * leave them where no loader looks. Knows files and symbols, not what a library does. */
#ifndef SHOAL_BASE_LIBRARY_H
#define SHOAL_BASE_LIBRARY_H

#include "base/error.h"

#include <stddef.h>

/* Opens the first that is there of `names` ("libcublasLt.so.13", "libcublasLt.so.12", NULL: wanted
 * first). It is looked for, each place with all names, in this order:
 *  1. in this process: what PyTorch or LD_PRELOAD has loaded;
 *  2. in SHOAL_CUDA_LIBRARY_PATH;
 *  3. where the loader looks (LD_LIBRARY_PATH, ldconfig);
 *  4. in CUDA's own folder: $CUDA_HOME, $CUDA_PATH, /usr/local/cuda*; CUPTI has one in there;
 *  5. in the nvidia packages of a Python: $VIRTUAL_ENV, $CONDA_PREFIX, those of PATH, ~/.local.
 * A library stays in the process until it ends: they start threads. Errors: ERR_NOT_FOUND, with
 * the name and where it can come from; ERR_INPUT: a file is there but cannot be loaded, and why. */
int library_open(const char *const *names, void **ret_library, struct error *err);

/* Opens `name`, a part of a library that is open: in that one's folder, else where the loader
 * looks. Errors: ERR_INPUT names the library's file, the part and why it cannot be loaded. */
int library_open_part(void *library, const char *name, struct error *err);

/* The file that the library was loaded from; "" if the loader does not say. */
const char *library_file(void *library);

/* A function of a library, and the member of a struct of function pointers it goes to. */
struct library_symbol {
    const char *name;
    size_t offset;
    bool optional; /* newer than the oldest library we work with: NULL where it is not there */
};

/* One of a table, of the type `functions`. */
#define LIBRARY_SYMBOL(functions, member, symbol)                                                  \
    {                                                                                              \
        symbol, offsetof(functions, member), false                                                 \
    }

/* Fills the struct at `functions` for all symbols up to one without a name. Errors:
 * ERR_UNSUPPORTED, naming the symbol and the library's file. */
int library_symbols(void *library, const struct library_symbol *symbols, void *functions,
                    struct error *err);

/* A library as people are told of it. */
struct library_facts {
    const char *name; /* "cuBLASLt" */
    char file[256];   /* "": none was opened */
    char version[24]; /* "13.1.0"; "": not known */
    struct error why; /* ERR_NONE: it can be used; ERR_UNSUPPORTED: it is too old; others: as
                         library_open() and library_open_part() have it */
};
#endif
