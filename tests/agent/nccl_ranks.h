/* Ranks as threads of the test, each with a communicator over NCCL: on the CPU and with a fake of
 * NCCL (tests/emulation/nccl*.c), whose settings say what goes wrong. */
#ifndef SHOAL_TESTS_AGENT_NCCL_RANKS_H
#define SHOAL_TESTS_AGENT_NCCL_RANKS_H

#include "agent/comm/comm_nccl.h"
#include "tests/agent/ranks.h"

/* What a test asks of its ranks. */
struct nccl_wish {
    int (*body)(struct rank *, struct comm *, struct stream *, struct error *);
    struct watchdog_options watchdog;
    bool registers, has_windows;
    bool waits_out; /* failures: nothing is aborted */
};

/* Runs the body on ranks 0 .. size - 1, each with its communicator. settings: FAKE_NCCL. The
 * results are in ranks[], which the test has zeroed. */
void nccl_ranks_run(struct rank *ranks, int size, const char *settings,
                    const struct nccl_wish *wish);

/* Does so with two ranks in a process of its own, which the fake must end. ret_told: what it has
 * said. Before any thread is started. */
enum { NCCL_TOLD_BYTES = 1000 };
void nccl_ranks_must_end(const struct nccl_wish *wish, const char *settings,
                         char ret_told[NCCL_TOLD_BYTES]);

/* A group's setup: the library lies beside the program, in build/VARIANT/emulation. */
int nccl_find_library(void **state);
#endif
