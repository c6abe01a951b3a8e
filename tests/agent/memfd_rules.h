/* A system that refuses memory without a name (memfd_create), for this process and its children,
 * from then on: a real filter of system calls (seccomp). */
#ifndef SHOAL_TESTS_AGENT_MEMFD_RULES_H
#define SHOAL_TESTS_AGENT_MEMFD_RULES_H

enum { MEMFD_NOEXEC_SEAL = 8 }; /* the flag MFD_NOEXEC_SEAL */

/* memfd_create fails with `number` if its flags & mask == value. Call it in a child. */
void memfd_refuse(unsigned mask, unsigned value, int number);

#endif
