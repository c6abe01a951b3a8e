/* CRC-32C (Castagnoli, RFC 3720 appendix B.4): what guards the records of TensorBoard's files. */
#ifndef SHOAL_AGENT_TELEMETRY_CRC32C_H
#define SHOAL_AGENT_TELEMETRY_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(const void *data, size_t bytes);
#endif
