#include "operator/wait_for_name.h"

#include "base/contract.h"
#include "base/log.h"
#include "base/options.h"

#include <inttypes.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int wait_for_name(const struct wait_for_name *how, const char *name, int64_t tries,
                  struct error *err)
{
    const char *why = "";
    for (int64_t i = 1; !tries || i <= tries; i++) {
        if (how->resolves(how->context, name, &why))
            return 0;
        if (tries)
            log_info("waiting for %s (%" PRId64 " of %" PRId64 "): %s", name, i, tries, why);
        else
            log_info("waiting for %s (%" PRId64 "): %s", name, i, why);
        if (i != tries)
            how->pause(how->context, WAIT_FOR_NAME_PAUSE_MS);
    }
    return error_set(err, ERR_TIMEOUT, "%s did not resolve in %" PRId64 " tries: %s", name, tries,
                     why);
}

static bool resolves(void *context, const char *name, const char **ret_why)
{
    (void)context;
    /* The resolver of the pod itself: a name that it finds is one that training can connect to. */
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int result = getaddrinfo(name, NULL, &hints, &list);
    if (result == 0)
        freeaddrinfo(list);
    else
        *ret_why = gai_strerror(result);
    return result == 0;
}

static void pause_ms(void *context, int64_t ms)
{
    (void)context;
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void end(int number)
{
    (void)number;
    _exit(EXIT_TERMINATED);
}

int wait_for_name_main(int argc, char *const *argv)
{
    int64_t tries = 0;
    const struct option_row rows[] = {
        {"tries", 0, OPTION_NUMBER, &tries, "N", "look-ups, 2 s apart, before giving up", 1,
         INT32_MAX, NULL},
        {NULL, 0, OPTION_FLAG, NULL, NULL, NULL, 0, 0, NULL},
    };
    struct error err;
    if (argc < 1 || argv[0][0] == '-') {
        log_error("wait-for: NAME is missing: wait-for NAME [--tries N]");
        return EXIT_CONFIG;
    }
    if (options_parse(rows, argc - 1, argv + 1, &err) < 0) {
        log_error("wait-for: %s", err.msg);
        return EXIT_CONFIG;
    }
    /* As PID 1 of its container this process has no default actions (pid_namespaces(7)): without a
     * handler SIGTERM would do nothing until the grace period is over. */
    struct sigaction action = {.sa_handler = end};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    const struct wait_for_name how = {.resolves = resolves, .pause = pause_ms};
    if (wait_for_name(&how, argv[0], tries, &err) < 0) {
        log_error("%s", err.msg);
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}
