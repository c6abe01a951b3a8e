#include "base/library.h"

#include "base/contract.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATTERN_MAX_BYTES = 1024, REASON_MAX_BYTES = 200 };

struct search {
    const char *const *names;
    void *library;                 /* the one found */
    char reason[REASON_MAX_BYTES]; /* why the last file that was there could not be loaded */
};

static bool try_file(struct search *search, const char *path)
{
    /* Local: two libraries may have functions of the same names (a wheel's NCCL beside the
     * system's). */
    search->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!search->library)
        snprintf(search->reason, sizeof search->reason, "%s", dlerror());
    return search->library;
}

static bool try_loaded(struct search *search)
{
    for (const char *const *name = search->names; *name && !search->library; name++)
        search->library = dlopen(*name, RTLD_NOW | RTLD_NOLOAD);
    return search->library;
}

static bool try_loader(struct search *search)
{
    for (const char *const *name = search->names; *name && !search->library; name++)
        search->library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
    return search->library;
}

/* The folders that match, in the order of their names. */
static bool try_folders(struct search *search, const char *pattern)
{
    for (const char *const *name = search->names; *name && !search->library; name++) {
        char files[PATTERN_MAX_BYTES];
        glob_t found;
        if (snprintf(files, sizeof files, "%s/%s", pattern, *name) >= (int)sizeof files ||
            glob(files, 0, NULL, &found) != 0)
            continue;
        for (size_t i = 0; i < found.gl_pathc && !search->library; i++)
            try_file(search, found.gl_pathv[i]);
        globfree(&found);
    }
    return search->library;
}

/* `below` of the folder that the variable names, if it is set. */
static bool try_below(struct search *search, const char *variable, const char *below)
{
    const char *folder = getenv(variable);
    char pattern[PATTERN_MAX_BYTES];
    return folder && *folder &&
           snprintf(pattern, sizeof pattern, "%s/%s", folder, below) < (int)sizeof pattern &&
           try_folders(search, pattern);
}

/* `below` of each folder of a list with colons that has a file `with` in it. */
static bool try_list(struct search *search, const char *list, const char *with, const char *below)
{
    for (size_t length; list && *list && !search->library; list += length + (list[length] == ':')) {
        length = strcspn(list, ":");
        char path[PATTERN_MAX_BYTES];
        int written = snprintf(path, sizeof path, "%.*s%s", (int)length, list, with);
        if (length == 0 || written >= (int)sizeof path || access(path, F_OK) != 0)
            continue;
        if (snprintf(path, sizeof path, "%.*s%s", (int)length, list, below) < (int)sizeof path)
            try_folders(search, path);
    }
    return search->library;
}

/* What pip and conda make of a Python's folder; Debian calls site-packages dist-packages. */
#define PYTHON_LIBRARIES "lib/python3*/*-packages/nvidia/*/lib"

/* What comes with CUDA but has a folder of its own. */
#define CUPTI_FOLDER "extras/CUPTI/lib64"

static bool try_cupti(struct search *search)
{
    return try_below(search, "CUDA_HOME", CUPTI_FOLDER) ||
           try_below(search, "CUDA_PATH", CUPTI_FOLDER) ||
           try_folders(search, "/usr/local/cuda*/" CUPTI_FOLDER);
}

static bool try_everywhere(struct search *search)
{
    return try_loaded(search) || try_list(search, getenv(ENV_LIBRARY_PATH), "", "") ||
           try_loader(search) || try_below(search, "CUDA_HOME", "lib64") ||
           try_below(search, "CUDA_PATH", "lib64") ||
           try_folders(search, "/usr/local/cuda*/lib64") || try_cupti(search) ||
           try_below(search, "VIRTUAL_ENV", PYTHON_LIBRARIES) ||
           try_below(search, "CONDA_PREFIX", PYTHON_LIBRARIES) ||
           try_list(search, getenv("PATH"), "/python3", "/../" PYTHON_LIBRARIES) ||
           try_below(search, "HOME", ".local/" PYTHON_LIBRARIES);
}

static const char *where_from(const char *name)
{
    bool is_drivers =
        strncmp(name, "libcuda.so", 10) == 0 || strncmp(name, "libnvidia-ml.so", 15) == 0;
    return is_drivers ? "NVIDIA's driver" : "the CUDA Toolkit and with PyTorch's wheels";
}

int library_open(const char *const *names, void **ret_library, struct error *err)
{
    struct search search = {.names = names};
    if (!try_everywhere(&search)) {
        if (search.reason[0])
            return error_set(err, ERR_INPUT, "%s cannot be loaded: %s", names[0], search.reason);
        return error_set(err, ERR_NOT_FOUND,
                         "%s is not on this machine: it comes with %s; " ENV_LIBRARY_PATH
                         " names folders to look into first",
                         names[0], where_from(names[0]));
    }
    *ret_library = search.library;
    return 0;
}

const char *library_file(void *library)
{
    struct link_map *map = NULL;
    return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map ? map->l_name : "";
}

int library_open_part(void *library, const char *name, struct error *err)
{
    const char *file = library_file(library), *end = strrchr(file, '/');
    char path[PATTERN_MAX_BYTES];
    int length = end ? (int)(end + 1 - file) : 0;
    if (snprintf(path, sizeof path, "%.*s%s", length, file, name) >= (int)sizeof path)
        return error_set(err, ERR_INPUT, "%s: its path is too long", file);
    /* What is there is the library's own part: another one's, from elsewhere, would not do. */
    if (dlopen(access(path, F_OK) == 0 ? path : name, RTLD_NOW | RTLD_LOCAL))
        return 0;
    return error_set(err, ERR_INPUT, "%s is installed by half: %s", file, dlerror());
}

int library_symbols(void *library, const struct library_symbol *symbols, void *functions,
                    struct error *err)
{
    for (const struct library_symbol *symbol = symbols; symbol->name; symbol++) {
        void *address = dlsym(library, symbol->name);
        if (!address && !symbol->optional) {
            return error_set(err, ERR_UNSUPPORTED, "%s has no %s: it is too old",
                             library_file(library), symbol->name);
        }
        memcpy((char *)functions + symbol->offset, &address, sizeof address);
    }
    return 0;
}
