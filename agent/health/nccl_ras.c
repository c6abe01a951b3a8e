#include "agent/health/nccl_ras.h"

#include "agent/comm/net.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HOST_BYTES = 256, LINE_BYTES = 256, NCCL_WAIT_S = 4 };

/* ---- one question ---- */

/* "[::1]:28028": brackets are not part of the host. */
static int read_address(const char *address, char ret_host[HOST_BYTES], int *ret_port,
                        struct error *err)
{
    const char *colon = strrchr(address, ':');
    size_t skip = address[0] == '[', length = colon ? (size_t)(colon - address) : 0;
    int64_t port = 0;
    if (skip && length > 1 && address[length - 1] == ']')
        length--;
    if (length <= skip || length - skip >= HOST_BYTES || !str_to_i64(colon + 1, 1, 65535, &port))
        return error_set(err, ERR_CONFIG, "NCCL_RAS_ADDR: '%s' is not HOST:PORT", address);
    snprintf(ret_host, HOST_BYTES, "%.*s", (int)(length - skip), address + skip);
    *ret_port = (int)port;
    return 0;
}

/* Returns the number of bytes, 0 at the end. */
static int read_some(int fd, char *buffer, size_t bytes, int64_t deadline_ms, struct error *err)
{
    for (;;) {
        ssize_t n = recv(fd, buffer, bytes, 0);
        if (n >= 0)
            return (int)n;
        if (errno != EAGAIN && errno != EINTR)
            return error_set(err, ERR_PEER, "connection lost: %s", strerror(errno));
        int64_t left_ms = deadline_ms - clock_monotonic_ms();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (left_ms <= 0 || poll(&p, 1, (int)left_ms) == 0)
            return error_set(err, ERR_TIMEOUT, "it says no more");
    }
}

/* Sends a line and reads one, byte for byte: what follows it is the next answer's. */
static int ask_line(int fd, const char *line, const char *expected, int64_t deadline_ms,
                    struct error *err)
{
    char answer[LINE_BYTES] = "";
    size_t length = 0;
    if (net_send(fd, line, strlen(line), deadline_ms, err) < 0)
        return -1;
    while (length < sizeof answer - 1 && (length == 0 || answer[length - 1] != '\n')) {
        int n = read_some(fd, answer + length, 1, deadline_ms, err);
        if (n < 0)
            return -1;
        if (n == 0)
            return error_set(err, ERR_PEER, "it hung up");
        length++;
    }
    answer[length] = '\0';
    return strncasecmp(answer, expected, strlen(expected)) == 0
               ? 0
               : error_set(err, ERR_INPUT, "what listens there is not NCCL's RAS");
}

/* Another program's bytes go to a log that people read in a terminal. */
static void add_clean(struct str *out, char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (((unsigned char)text[i] < ' ' && text[i] != '\n' && text[i] != '\t') || text[i] == 127)
            text[i] = '?';
    str_add_bytes(out, text, bytes);
}

static int read_status(int fd, int64_t deadline_ms, struct str *out, struct error *err)
{
    static const char command[] = "VERBOSE STATUS\n";
    size_t left = NCCL_RAS_TEXT_BYTES;
    char text[4096];
    if (net_send(fd, command, strlen(command), deadline_ms, err) < 0)
        return -1;
    while (left > 0) {
        size_t most = left < sizeof text ? left : sizeof text;
        int n = read_some(fd, text, most, deadline_ms, err);
        if (n <= 0)
            return n;
        add_clean(out, text, (size_t)n);
        left -= (size_t)n;
    }
    str_add(out, "\n... (the rest is left out)\n");
    return 0;
}

int nccl_ras_ask(const char *address, int wait_ms, struct str *out, struct error *err)
{
    char host[HOST_BYTES], timeout[32];
    int port = 0, fd;
    int64_t deadline_ms = clock_monotonic_ms() + wait_ms;
    if (read_address(address, host, &port, err) ||
        net_connect(host, port, deadline_ms, &fd, err) < 0)
        return -1;
    snprintf(timeout, sizeof timeout, "TIMEOUT %d\n", NCCL_WAIT_S);
    int result = ask_line(fd, "CLIENT PROTOCOL 2\n", "SERVER PROTOCOL ", deadline_ms, err);
    if (result == 0)
        result = ask_line(fd, timeout, "OK", deadline_ms, err);
    if (result == 0)
        result = read_status(fd, deadline_ms, out, err);
    close(fd);
    return result;
}

/* ---- in a thread ---- */

struct nccl_ras {
    const char *address;
    pthread_t thread;
    bool has_thread;
    atomic_bool is_due; /* an answer */
};

static void *ras_main(void *arg)
{
    struct nccl_ras *ras = arg;
    auto_str struct str text;
    struct error err;
    str_init(&text, 2 * NCCL_RAS_TEXT_BYTES);
    int result = nccl_ras_ask(ras->address, NCCL_RAS_WAIT_MS, &text, &err);
    /* Not through the log, whose lines are shorter. */
    if (text.length > 0)
        dprintf(STDERR_FILENO, "shoal-agent: NCCL's RAS (%s) says of its processes:\n%s\n",
                ras->address, str_text(&text));
    if (result && err.code != ERR_IO) /* before 2.24, or with NCCL_RAS_ENABLE=0, nobody listens */
        log_warning("NCCL's RAS at %s was asked about the rank that hangs: %s", ras->address,
                    err.msg);
    atomic_store(&ras->is_due, false);
    return NULL;
}

struct nccl_ras *nccl_ras_open(const char *address)
{
    struct nccl_ras *ras = xcalloc(1, sizeof *ras);
    ras->address = address;
    return ras;
}

void nccl_ras_close(struct nccl_ras *ras)
{
    if (ras && ras->has_thread)
        pthread_join(ras->thread, NULL);
    free(ras);
}

void nccl_ras_begin(struct nccl_ras *ras)
{
    if (atomic_load(&ras->is_due))
        return;
    if (ras->has_thread)
        pthread_join(ras->thread, NULL);
    atomic_store(&ras->is_due, true);
    ras->has_thread = pthread_create(&ras->thread, NULL, ras_main, ras) == 0;
    if (!ras->has_thread)
        atomic_store(&ras->is_due, false);
}
