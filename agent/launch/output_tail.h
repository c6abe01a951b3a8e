/* The last bytes that a rank wrote: of one that was killed they are all that tells what it did. The
 * launcher adds what it passes on, and shows the end of it beside the cause of a round's end. Pure;
 * knows no processes and no files. */
#ifndef SHOAL_AGENT_LAUNCH_OUTPUT_TAIL_H
#define SHOAL_AGENT_LAUNCH_OUTPUT_TAIL_H

#include "base/str.h"

#include <stddef.h>

enum { OUTPUT_TAIL_BYTES = 4096, OUTPUT_TAIL_LINES = 10 };

/* All zero: empty. */
struct output_tail {
    char bytes[OUTPUT_TAIL_BYTES]; /* a ring */
    size_t total;                  /* added so far */
};

void output_tail_add(struct output_tail *tail, const char *bytes, size_t count);
/* Adds the last OUTPUT_TAIL_LINES lines that are whole, each indented by four blanks and made
 * printable (base/utf8.h). The very last may lack its newline. Adds nothing if there is none. */
void output_tail_print(const struct output_tail *tail, struct str *out);
#endif
