/* A text that is kept for later, deflated (RFC 1951): the JSON of an API object becomes two fifths
 * as long. Packing takes a few tens of microseconds per KB, and unpacking a tenth of that. */
#ifndef SHOAL_BASE_PACKED_H
#define SHOAL_BASE_PACKED_H

#include <stdint.h>

struct packed {
    uint32_t bytes, text_bytes; /* the text's without its end */
    unsigned char data[];       /* [bytes], and room for some more */
};

/* Packs the text where another one was kept (NULL: none yet), if there is room: as mem_keep_text.
 * Takes `old`. The caller frees what is returned, with free. The text is shorter than 2 GiB. */
struct packed *packed_keep(struct packed *old, const char *text);
/* The text again. The caller frees it. */
char *packed_text(const struct packed *packed);
#endif
