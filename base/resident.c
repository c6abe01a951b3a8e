#include "base/resident.h"

#include <inttypes.h>
#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

enum { LARGE_BYTES = 128 << 10 };

/* Two fields of proc(5)'s statm, in bytes; `file` is the part of `all` that maps files. */
static bool read_resident(int64_t *ret_all, int64_t *ret_file)
{
    auto_free char *text = NULL;
    size_t bytes;
    struct error ignored;
    if (file_read("/proc/self/statm", 4096, &text, &bytes, &ignored) < 0 ||
        sscanf(text, "%*d %" SCNd64 " %" SCNd64, ret_all, ret_file) != 2)
        return false;
    *ret_all *= sysconf(_SC_PAGESIZE);
    *ret_file *= sysconf(_SC_PAGESIZE);
    return true;
}

int64_t resident_bytes(void)
{
    int64_t all, file;
    return read_resident(&all, &file) ? all : -1;
}

int64_t resident_spare_bytes(void)
{
    int64_t all, file;
    if (!read_resident(&all, &file))
        return -1;
    struct mallinfo2 heap = mallinfo2();
    int64_t spare = all - file - (int64_t)(heap.uordblks + heap.hblkhd);
    return spare > 0 ? spare : 0; /* what is in use may not have been touched yet */
}

void mem_return_large(void)
{
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES); /* a threshold that is set does not grow */
}

/* Segments that are not writable are as in their file: nothing is lost with their pages. */
static int drop_constant(struct dl_phdr_info *object, size_t bytes, void *context)
{
    (void)bytes, (void)context;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W))
            continue;
        uintptr_t start = (object->dlpi_addr + segment->p_vaddr) & ~(page - 1);
        uintptr_t end = object->dlpi_addr + segment->p_vaddr + segment->p_memsz;
        madvise((void *)start, end - start, MADV_DONTNEED); /* a hint: it may be refused */
    }
    return 0;
}

void mem_trim(void)
{
    /* free() returns only the heap's end to the system: what start-up needed would stay resident
     * for ever. */
    malloc_trim(0);
    dl_iterate_phdr(drop_constant, NULL);
}
