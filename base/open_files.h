/* How many files (and sockets, and pipes) a process may have open. */
#ifndef SHOAL_BASE_OPEN_FILES_H
#define SHOAL_BASE_OPEN_FILES_H

#include <stdint.h>

/* Lets this process, and those that it starts, have as many as the system's hard limit allows. */
void open_files_raise(void);

int64_t open_files_limit(void);
#endif
