/* Looks at this machine for `shoal-agent doctor`, with the functions that training itself uses: it
 * opens the libraries, each GPU in turn, and no connection. */
#ifndef SHOAL_AGENT_DOCTOR_EXAMINE_H
#define SHOAL_AGENT_DOCTOR_EXAMINE_H

#include "agent/doctor/doctor_facts.h"

/* asked: --device, valid; it outlives *ret. share_gpus: --share_gpus. */
void examine(const char *asked, bool share_gpus, struct doctor_facts *ret);
#endif
