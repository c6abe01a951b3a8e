/* Which file a process sees at an address. For signal handlers: allocates nothing, formats nothing.
 */
#ifndef SHOAL_AGENT_MAPPED_FILE_H
#define SHOAL_AGENT_MAPPED_FILE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the path, as /proc/self/maps has it ("... (deleted)" if it is), cut to fit. false: there
 * is no file. */
bool mapped_file(const void *address, char *out, size_t out_bytes);

#ifdef __cplusplus
}
#endif
#endif
