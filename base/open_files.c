#include "base/open_files.h"

#include <sys/resource.h>

void open_files_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit); /* if that fails it stays as it is */
}

int64_t open_files_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > INT64_MAX)
        return INT64_MAX;
    return (int64_t)limit.rlim_cur;
}
