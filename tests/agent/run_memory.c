#include "tests/agent/run_memory.h"

#include "agent/launch/rank_memory.h"
#include "tests/support.h"

#include <unistd.h>

void run_memory_open(int *fds, int size)
{
    struct error err;
    for (int rank = 0; rank < size; rank++)
        assert_ok(rank_memory_open(rank, &fds[rank], &err), &err);
}

void run_memory_close(const int *fds, int size)
{
    for (int rank = 0; rank < size; rank++)
        close(fds[rank]);
}
