/* NCCL without GPUs: the part of it that agent/comm/nccl_api.h declares, between threads and
 * processes of one machine, through shared memory. Every rank's collective is compared with the
 * others': one that differs in kind, size or order ends the test. On a stream of the emulated GPU a
 * collective waits while other streams go on; without a stream (on the CPU) the caller waits. Two
 * communicators of a rank go on by themselves, as two streams do; where NCCL could deadlock so
 * (agent/comm/nccl_api.h), that ends the test. Every collective is in progress until the caller has
 * asked for its end, and a communicator takes one call at a time: a second one, from whatever
 * thread, ends the test. An abort waits for all that the rank's other communicators have under way,
 * unless they are aborted in one group. Of sends and receives a group has one of each with every
 * rank, or the test ends.
 *
 * FAKE_NCCL holds faults as "name=value,name=value"; a collective is named RANK:NUMBER, counted
 * from 0 in its communicator: hang (it never begins), fail (an asynchronous error then), lose (the
 * process is killed then), stop (it is stopped then), abort_hangs=RANK (ncclCommAbort does not
 * return), refuse=NUMBER (of every rank: the call fails at once), version=22703; ordered=1: all
 * ranks must launch everything in one order; registered=1: what is gathered and reduce-scattered
 * must lie in registered memory; lends=0: ncclMemAlloc fails, lends_not=RANK or RANK:TIMES: there,
 * so often it did not; of symmetric windows window_refused=RANK: that call fails, no_windows=RANK:
 * it registers nothing, tell_windows=1: each communicator says in the end how many collectives ran
 * in them. Memory that is freed while it is registered ends the test. */
#include "tests/emulation/nccl_fake.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ABORT_WAITS = 300 * 1000000 / WAIT_US }; /* of a machine that may be busy */

#define EXPORTED __attribute__((visibility("default")))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ncclComm *comms;
static _Thread_local struct owner *this_thread;

const char *fake_nccl_setting(const char *name)
{
    const char *all = getenv("FAKE_NCCL");
    size_t length = strlen(name);
    for (const char *at = all; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
    return NULL;
}

int fake_nccl_version(void)
{
    const char *text = fake_nccl_setting("version");
    return text ? atoi(text) : 22809;
}

void fake_nccl_end(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "fake NCCL: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    abort();
}

int fake_nccl_this_rank(void)
{
    int rank = -1;
    pthread_mutex_lock(&lock);
    for (const struct ncclComm *c = comms; c && rank < 0; c = c->next)
        rank = c->owner == this_thread ? c->rank : -1;
    pthread_mutex_unlock(&lock);
    return rank;
}

void fake_nccl_enter(struct ncclComm *c, const char *call)
{
    const char *other = __atomic_exchange_n(&c->inside, call, __ATOMIC_SEQ_CST);
    if (!other)
        return;
    fprintf(stderr, "fake NCCL: %s of %s while another thread is in %s\n", call, c->name, other);
    abort();
}

int fake_nccl_leave(struct ncclComm *c, int result)
{
    __atomic_store_n(&c->inside, NULL, __ATOMIC_SEQ_CST);
    return result;
}

#define HEADER(name, ...) (&(struct header){.op = name, __VA_ARGS__})

/* ---- NCCL's names ---- */

EXPORTED int ncclGetVersion(int *version);
EXPORTED int ncclGetVersion(int *version)
{
    *version = fake_nccl_version();
    return NCCL_SUCCESS;
}

EXPORTED int ncclGetUniqueId(struct nccl_id *id);
EXPORTED int ncclGetUniqueId(struct nccl_id *id)
{
    static int count;
    memset(id, 0, sizeof *id);
    snprintf(id->bytes, sizeof id->bytes, "/shoal-fake-nccl-%d-%d", (int)getpid(),
             __atomic_fetch_add(&count, 1, __ATOMIC_SEQ_CST));
    return NCCL_SUCCESS;
}

EXPORTED int ncclCommInitRankConfig(nccl_comm *ret_comm, int size, struct nccl_id id, int rank,
                                    struct nccl_config *config);
EXPORTED int ncclCommInitRankConfig(nccl_comm *ret_comm, int size, struct nccl_id id, int rank,
                                    struct nccl_config *config)
{
    if (config->magic != NCCL_CONFIG_MAGIC || config->size != sizeof *config || size > RANKS)
        return NCCL_INVALID_ARGUMENT;
    struct ncclComm *c = calloc(1, sizeof *c);
    int fd = shm_open(id.bytes, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *c->meeting) < 0)
        return NCCL_INVALID_USAGE;
    c->meeting = mmap(NULL, sizeof *c->meeting, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    c->rank = rank;
    c->size = size;
    if (!this_thread)
        this_thread = calloc(1, sizeof *this_thread);
    c->owner = this_thread;
    c->owner->comms++;
    snprintf(c->name, sizeof c->name, "%s", id.bytes);
    if (__atomic_fetch_add(&c->meeting->joined, 1, __ATOMIC_SEQ_CST) + 1 == size)
        shm_unlink(c->name);
    pthread_mutex_lock(&lock);
    c->next = comms;
    comms = c;
    pthread_mutex_unlock(&lock);
    *ret_comm = c;
    return NCCL_IN_PROGRESS;
}

static void join_launch(struct ncclComm *c)
{
    if (c->has_launch)
        pthread_join(c->launch, NULL);
    c->has_launch = false;
}

EXPORTED int ncclCommGetAsyncError(nccl_comm c, int *error);
EXPORTED int ncclCommGetAsyncError(nccl_comm c, int *error)
{
    fake_nccl_enter(c, "GetAsyncError");
    *error = __atomic_load_n(&c->error, __ATOMIC_SEQ_CST);
    if (!*error && __atomic_load_n(&c->meeting->joined, __ATOMIC_SEQ_CST) < c->size)
        *error = NCCL_IN_PROGRESS;
    if (!*error && fake_nccl_is_registering(c))
        *error = NCCL_IN_PROGRESS;
    if (!*error && c->has_launch) {
        usleep(WAIT_US); /* so that who comes meanwhile is caught */
        *error = NCCL_IN_PROGRESS;
        if (__atomic_load_n(&c->is_launched, __ATOMIC_SEQ_CST)) {
            join_launch(c);
            *error = NCCL_SUCCESS;
        }
    }
    return fake_nccl_leave(c, NCCL_SUCCESS);
}

EXPORTED int ncclCommRegister(nccl_comm c, void *memory, size_t bytes, void **handle);
EXPORTED int ncclCommRegister(nccl_comm c, void *memory, size_t bytes, void **handle)
{
    uint64_t offset;
    fake_nccl_enter(c, "Register");
    if (fake_nccl_window_of(c, memory, bytes, &offset))
        fake_nccl_end("memory of a window of %s is registered once more", c->name);
    for (int i = 0; i < RANGES; i++) {
        if (c->registered[i].begin)
            continue;
        range_set(&c->registered[i], (struct range){memory, (unsigned char *)memory + bytes});
        *handle = &c->registered[i];
        return fake_nccl_leave(c, NCCL_SUCCESS);
    }
    return fake_nccl_leave(c, NCCL_INVALID_ARGUMENT);
}

EXPORTED int ncclCommDeregister(nccl_comm c, void *handle);
EXPORTED int ncclCommDeregister(nccl_comm c, void *handle)
{
    fake_nccl_enter(c, "Deregister");
    range_set(handle, (struct range){NULL, NULL});
    return fake_nccl_leave(c, NCCL_SUCCESS);
}

void fake_nccl_must_be_free(const void *memory)
{
    pthread_mutex_lock(&lock);
    for (const struct ncclComm *c = comms; c; c = c->next)
        for (int i = 0; i < RANGES && !__atomic_load_n(&c->is_aborted, __ATOMIC_SEQ_CST); i++)
            if (__atomic_load_n(&c->registered[i].begin, __ATOMIC_SEQ_CST) == memory ||
                __atomic_load_n(&c->windows[i].range.begin, __ATOMIC_SEQ_CST) == memory)
                fake_nccl_end("memory is freed that %s has registered", c->name);
    pthread_mutex_unlock(&lock);
}

EXPORTED int ncclCommFinalize(nccl_comm c);
EXPORTED int ncclCommFinalize(nccl_comm c)
{
    fake_nccl_enter(c, "Finalize");
    for (int i = 0; i < RANGES; i++)
        if (c->registered[i].begin)
            fake_nccl_end("%s ends with registered memory", c->name);
    if (fake_nccl_has_windows(c))
        fake_nccl_end("%s ends with a window", c->name);
    return fake_nccl_leave(c, NCCL_SUCCESS);
}

/* What the rank has under way besides ends, or the test does. */
static void await_others(const struct ncclComm *c)
{
    pthread_mutex_lock(&lock);
    for (const struct ncclComm *other = comms; other; other = other->next)
        for (int waits = 0;
             other->owner == c->owner && __atomic_load_n(&other->under_way, __ATOMIC_SEQ_CST);
             waits++) {
            if (waits == ABORT_WAITS) {
                fprintf(stderr, "fake NCCL: the abort of %s waits for a collective of %s\n",
                        c->name, other->name);
                abort();
            }
            usleep(WAIT_US);
        }
    pthread_mutex_unlock(&lock);
}

static _Thread_local struct {
    int depth;
    const struct ncclComm *aborted; /* the last of those aborted in it */
    struct ncclComm *exchanges;     /* has sends and receives in it; or NULL */
} group;

EXPORTED int ncclGroupStart(void);
EXPORTED int ncclGroupStart(void)
{
    group.depth++;
    return NCCL_SUCCESS;
}

EXPORTED int ncclGroupEnd(void);
EXPORTED int ncclGroupEnd(void)
{
    if (--group.depth > 0)
        return NCCL_SUCCESS;
    if (group.aborted)
        await_others(group.aborted);
    group.aborted = NULL;
    struct ncclComm *c = group.exchanges;
    group.exchanges = NULL;
    return c ? fake_nccl_put_peers(c) : NCCL_SUCCESS;
}

static int add_peer(struct ncclComm *c, int peer, const void *send, void *recv, size_t count,
                    int type, void *stream)
{
    if (group.depth == 0 || (group.exchanges && group.exchanges != c)) {
        fprintf(stderr, "fake NCCL: %s sends or receives in no group, or another's\n", c->name);
        abort();
    }
    group.exchanges = c;
    return fake_nccl_add_peer(c, peer, send, recv, count, type, stream);
}

EXPORTED int ncclSend(const void *send, size_t count, int type, int peer, nccl_comm c,
                      void *stream);
EXPORTED int ncclSend(const void *send, size_t count, int type, int peer, nccl_comm c, void *stream)
{
    return add_peer(c, peer, send, NULL, count, type, stream);
}

EXPORTED int ncclRecv(void *recv, size_t count, int type, int peer, nccl_comm c, void *stream);
EXPORTED int ncclRecv(void *recv, size_t count, int type, int peer, nccl_comm c, void *stream)
{
    return add_peer(c, peer, NULL, recv, count, type, stream);
}

EXPORTED int ncclCommAbort(nccl_comm c);
EXPORTED int ncclCommAbort(nccl_comm c)
{
    const char *hangs = fake_nccl_setting("abort_hangs");
    while (hangs && atoi(hangs) == c->rank)
        usleep(WAIT_US);
    fake_nccl_enter(c, "Abort");
    shm_unlink(c->name); /* if not all have come */
    __atomic_store_n(&c->is_aborted, true, __ATOMIC_SEQ_CST);
    join_launch(c);
    if (group.depth > 0)
        group.aborted = c;
    else
        await_others(c);
    return fake_nccl_leave(c, NCCL_SUCCESS);
}

EXPORTED int ncclCommDestroy(nccl_comm c);
EXPORTED int ncclCommDestroy(nccl_comm c)
{
    fake_nccl_enter(c, "Destroy");
    if (fake_nccl_setting("tell_windows"))
        fprintf(stderr, "fake NCCL: rank %d ran %lu collectives in windows\n", c->rank,
                c->windowed);
    pthread_mutex_lock(&lock);
    struct ncclComm **at = &comms;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    pthread_mutex_unlock(&lock);
    if (--c->owner->comms == 0) { /* by the thread that opened it */
        free(c->owner);
        this_thread = NULL;
    }
    munmap(c->meeting, sizeof *c->meeting);
    free(c);
    return NCCL_SUCCESS;
}

EXPORTED const char *ncclGetErrorString(int result);
EXPORTED const char *ncclGetErrorString(int result)
{
    return result == REMOTE_ERROR ? "remote process exited or there was a network error" : "error";
}

EXPORTED const char *ncclGetLastError(nccl_comm c);
EXPORTED const char *ncclGetLastError(nccl_comm c)
{
    (void)c;
    return "";
}

EXPORTED int ncclAllGather(const void *send, void *recv, size_t count, int type, nccl_comm c,
                           void *stream);
EXPORTED int ncclAllGather(const void *send, void *recv, size_t count, int type, nccl_comm c,
                           void *stream)
{
    return fake_nccl_put(c, HEADER("all_gather", .count = count, .type = type), send, recv, count,
                         stream);
}

EXPORTED int ncclReduceScatter(const void *send, void *recv, size_t count, int type, int op,
                               nccl_comm c, void *stream);
EXPORTED int ncclReduceScatter(const void *send, void *recv, size_t count, int type, int op,
                               nccl_comm c, void *stream)
{
    return fake_nccl_put(c, HEADER("reduce_scatter", .count = count, .type = type, .reduction = op),
                         send, recv, count * (size_t)c->size, stream);
}

EXPORTED int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op,
                           nccl_comm c, void *stream);
EXPORTED int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op,
                           nccl_comm c, void *stream)
{
    return fake_nccl_put(c, HEADER("all_reduce", .count = count, .type = type, .reduction = op),
                         send, recv, count, stream);
}

EXPORTED int ncclBroadcast(const void *send, void *recv, size_t count, int type, int root,
                           nccl_comm c, void *stream);
EXPORTED int ncclBroadcast(const void *send, void *recv, size_t count, int type, int root,
                           nccl_comm c, void *stream)
{
    return fake_nccl_put(c, HEADER("broadcast", .count = count, .type = type, .root = root), send,
                         recv, count, stream);
}
