#include "tests/free_port.h"

#include "base/listen.h"
#include "base/mem.h"

#include <unistd.h>

int free_port(void)
{
    static int next;
    for (;;) {
        int port = 10000 + (getpid() * 37 + next++) % 20000;
        struct error err;
        auto_close int fd = -1;
        if (listen_tcp("127.0.0.1", port, &fd, &err) == 0)
            return port;
    }
}
