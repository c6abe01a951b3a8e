/* For LD_PRELOAD: who commits a checkpoint (renames a folder to "...steps") goes on when the file
 * $HOLD_UNTIL is there. So a test can do something between the first checkpoint and the end of a
 * run, however slow it is and however fast the run. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAUSE_US = 10000 };

int rename(const char *from, const char *to)
{
    int (*really)(const char *, const char *) =
        (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    const char *until = getenv("HOLD_UNTIL");
    size_t length = strlen(to);
    int result = really(from, to);
    if (result == 0 && until && length >= 5 && strcmp(to + length - 5, "steps") == 0)
        while (access(until, F_OK) != 0)
            usleep(PAUSE_US);
    return result;
}
