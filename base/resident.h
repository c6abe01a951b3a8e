/* How much memory this process holds, and giving back what it needs no more. */
#ifndef SHOAL_BASE_RESIDENT_H
#define SHOAL_BASE_RESIDENT_H

#include <stdint.h>

/* Resident memory of this process; -1: not known. */
int64_t resident_bytes(void);

/* Memory of this process alone (not of files that it maps) that is resident and not in use by its
 * heap: freed and not given back, and what lies outside the heap, which changes little. -1: not
 * known. Walks over the heap's free blocks: for now and then. */
int64_t resident_spare_bytes(void);

/* From now on what is allocated in one piece of 128 KiB or more goes back to the system when it is
 * freed. By itself glibc keeps ever larger ones for later: for a process that makes a long text now
 * and then. At its start. */
void mem_return_large(void);

/* Lets go of the pages of programs' and libraries' code and constants, and of free heap. Most were
 * touched, or read ahead of those touched, by the start of libraries alone; what is used after all
 * comes back from the page cache, page by page. For a process that has settled and may then be idle
 * for days. Any thread may call it while others run. */
void mem_trim(void);
#endif
