/* The program of the pause image: it holds a pod's network and PID namespaces, reaps what is left
 * to it, and ends on SIGTERM. Static and without libc's start-up beyond what is needed, so that its
 * image needs nothing else. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_child(int number)
{
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
}

static void on_stop(int number)
{
    (void)number;
    _exit(0);
}

int main(void)
{
    signal(SIGCHLD, on_child);
    signal(SIGINT, on_stop);
    signal(SIGTERM, on_stop);
    for (;;) {
        pause();
    }
}
