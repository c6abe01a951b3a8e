/* What may be told to anybody in the place of a run's id, which ranks prove their place in the run
 * by: two that are equal are of one run, and who cannot guess the id cannot find it. Pure. */
#ifndef SHOAL_BASE_RUN_DIGEST_H
#define SHOAL_BASE_RUN_DIGEST_H

enum { RUN_DIGEST_BYTES = 33 }; /* hex digits and the terminator */

/* SHA-256 over "shoal run\n" and the id, cut to 128 bits. Of "": "". */
void run_digest(const char *run_id, char ret_digest[RUN_DIGEST_BYTES]);
#endif
