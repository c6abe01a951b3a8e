#include "base/resident.h"

#include <link.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

int64_t resident_bytes(void)
{
    auto_free char *text = NULL;
    size_t bytes;
    struct error ignored;
    long long resident = -1;
    if (file_read("/proc/self/statm", 4096, &text, &bytes, &ignored) < 0 ||
        sscanf(text, "%*d %lld", &resident) != 1)
        return -1;
    return resident * sysconf(_SC_PAGESIZE);
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

void resident_trim(void)
{
    malloc_trim(0);
    dl_iterate_phdr(drop_constant, NULL);
}
