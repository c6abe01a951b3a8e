/* The errors that NVIDIA's driver numbers (Xid): what each means and what NVIDIA says to do at
 * once. https://docs.nvidia.com/deploy/xid-errors/ is the source. Pure; docs/xid.md has the same
 * rows. */
#ifndef SHOAL_AGENT_TELEMETRY_XID_H
#define SHOAL_AGENT_TELEMETRY_XID_H

#include <stdbool.h>
#include <stdint.h>

/* From the mildest on; the last depends on what is reported beside it. */
enum xid_action {
    XID_IGNORE,
    XID_RESTART_APP,
    XID_RESET_GPU,
    XID_RESTART_MACHINE,
    XID_CONTACT_SUPPORT,
    XID_FOLLOW,
    XID_ACTIONS
};

struct xid {
    uint64_t number;
    const char *mnemonic; /* the driver's, as NVIDIA's catalog has it */
    const char *meaning;  /* in a few words */
    enum xid_action action;
};

/* NULL: the catalog has no action for it. */
const struct xid *xid_find(uint64_t number);
/* The ith row, by number; NULL behind the last. */
const struct xid *xid_at(int i);
/* Whether nothing more is to be computed there until somebody has acted: a reset of the GPU, a
 * restart of the machine, support. */
bool xid_is_hardware(enum xid_action action);
const char *xid_action_text(enum xid_action action); /* "restart the machine" */
#endif
