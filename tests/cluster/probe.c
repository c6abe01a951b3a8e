/* probe NAME [PORT]: looks NAME up until it has an address, connects to PORT there if one is given,
 * says so in one line and waits to be stopped. What the smoke test runs in a pod. */
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RETRY_MS = 200 };

static struct addrinfo *look_up(const char *name, const char *port)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;

    while (getaddrinfo(name, port, &hints, &found) != 0) {
        usleep(RETRY_MS * 1000);
    }
    return found;
}

int main(int argc, char **argv)
{
    char address[NI_MAXHOST];
    const char *port = argc > 2 ? argv[2] : NULL;

    if (argc < 2) {
        fputs("usage: probe NAME [PORT]\n", stderr);
        return 2;
    }
    signal(SIGTERM, _exit); /* a PID namespace's first process has no default action */
    struct addrinfo *found = look_up(argv[1], port);
    getnameinfo(found->ai_addr, found->ai_addrlen, address, sizeof address, NULL, 0,
                NI_NUMERICHOST);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (port != NULL && (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) != 0)) {
        perror(address);
        return 1;
    }
    freeaddrinfo(found);
    printf("%s is %s\n", argv[1], address);
    fflush(stdout);
    for (;;) {
        pause();
    }
}
