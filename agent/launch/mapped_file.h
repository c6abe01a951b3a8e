/* Finds the file that is mapped at an address. For signal handlers: allocates and
 * formats nothing. */
#ifndef SHOAL_AGENT_LAUNCH_MAPPED_FILE_H
#define SHOAL_AGENT_LAUNCH_MAPPED_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the path as in /proc/self/maps, with " (deleted)" where the kernel adds that, cut to fit.
 * false: no file is mapped there. */
bool mapped_file(const void *address, char *out, size_t out_bytes);
#endif
