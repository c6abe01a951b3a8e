/* What is done about a rank that hangs (runtime.hang_action). */
#ifndef SHOAL_AGENT_HEALTH_HANG_ACTION_H
#define SHOAL_AGENT_HEALTH_HANG_ACTION_H

enum hang_action {
    HANG_REPORT,  /* it is named, and writes its stacks */
    HANG_RESTART, /* if it hangs on, it is also killed, so that all ranks start again */
    HANG_IGNORE,  /* nobody looks for one */
};

/* A rank is killed only where somebody starts it again. attempt, most: how often ranks were started
 * again, and how often they may be, as the launcher, or torchrun, tells them; NULL: it does not. */
enum hang_action hang_action_now(enum hang_action asked, const char *attempt, const char *most);
#endif
