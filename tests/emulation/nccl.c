/* NCCL without GPUs: the part of it that agent/comm/nccl_api.h declares, between threads and
 * processes of one machine, through shared memory. Every rank's collective is compared with the
 * others': one that differs in kind, size or order ends the test. On a stream of the emulated GPU a
 * collective waits while other streams go on; without a stream (on the CPU) the caller waits. Two
 * communicators of a rank go on by themselves, as two streams do; where NCCL could deadlock so
 * (agent/comm/nccl_api.h), that ends the test.
 *
 * FAKE_NCCL holds faults as "name=value,name=value"; a collective is named RANK:NUMBER, counted
 * from 0 in its communicator: hang (it never begins), fail (an asynchronous error then), lose (the
 * process is killed then), stop (it is stopped then), abort_hangs=RANK (ncclCommAbort does not
 * return), version=22703; ordered=1: all ranks must launch everything in one order. */
#include "agent/comm/nccl_api.h"
#include "kernels/dtype.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS = 16, CHUNK_BYTES = 64 * 1024, REMOTE_ERROR = 6, WAIT_US = 50 };

/* What a rank shows the others. */
struct slot {
    _Alignas(64) atomic_ulong step; /* 2 n + 1: its chunk n is there; 2 n + 2: it has read all */
    struct header {
        char op[16];
        uint64_t number, count;
        int type, reduction, root;
        uint64_t launch; /* of all that the rank has launched; 0: not compared */
    } header;
    _Alignas(64) unsigned char data[CHUNK_BYTES];
};

struct meeting {
    atomic_int joined;
    struct slot slots[RANKS];
};

/* A rank: the thread that opened communicators, of which it may have several. */
struct owner {
    int comms;
    uint64_t launches;
    const struct ncclComm *runs; /* has a collective that has begun and not ended; or NULL */
};

struct ncclComm {
    struct owner *owner;
    struct ncclComm *next; /* of all: what was aborted may still lie on a stream */
    struct meeting *meeting;
    char name[sizeof(struct nccl_id)];
    int rank, size;
    uint64_t chunks;        /* done */
    uint64_t numbers;       /* collectives given */
    atomic_bool is_aborted; /* its collectives end at once */
    atomic_int error;
};

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int ncclGetVersion(int *version);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ncclComm *comms;
static _Thread_local struct owner *this_thread;

/* ---- faults ---- */

static const char *setting(const char *name)
{
    const char *all = getenv("FAKE_NCCL");
    size_t length = strlen(name);
    for (const char *at = all; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
    return NULL;
}

static bool is_meant(const char *name, const struct ncclComm *c, uint64_t number)
{
    const char *text = setting(name);
    int rank = -1;
    unsigned long n = 0;
    return text && sscanf(text, "%d:%lu", &rank, &n) == 2 && rank == c->rank && n == number;
}

/* ---- a collective ---- */

struct collective {
    struct ncclComm *c;
    struct header header;
    const unsigned char *send;
    unsigned char *recv;
    size_t element, total, done; /* elements of `send` */
    bool is_written, is_first;
};

static size_t element_bytes(int type)
{
    static const size_t bytes[] = {
        [NCCL_UINT8] = 1, [NCCL_FLOAT32] = 4, [NCCL_FLOAT64] = 8, [NCCL_BFLOAT16] = 2};
    return bytes[type];
}

static bool are_alike(const struct header *a, const struct header *b)
{
    return strcmp(a->op, b->op) == 0 && a->number == b->number && a->count == b->count &&
           a->type == b->type && a->reduction == b->reduction && a->root == b->root &&
           a->launch == b->launch;
}

static void check_headers(const struct collective *k)
{
    const struct meeting *m = k->c->meeting;
    for (int r = 0; r < k->c->size; r++) {
        const struct header *theirs = &m->slots[r].header, *mine = &k->header;
        if (are_alike(theirs, mine))
            continue;
        fprintf(stderr,
                "fake NCCL: rank %d runs %s %lu of %lu elements of type %d as number %lu, rank %d "
                "%s %lu of %lu of type %d as number %lu\n",
                k->c->rank, mine->op, mine->number, mine->count, mine->type, mine->launch, r,
                theirs->op, theirs->number, theirs->count, theirs->type, theirs->launch);
        abort();
    }
}

static bool all_have(const struct ncclComm *c, uint64_t step)
{
    for (int r = 0; r < c->size; r++)
        if (atomic_load(&c->meeting->slots[r].step) < step)
            return false;
    return true;
}

static double number_at(int type, const unsigned char *at)
{
    float f;
    double d;
    bf16 b;
    switch (type) {
    case NCCL_FLOAT32:
        return (double)*(const float *)memcpy(&f, at, sizeof f);
    case NCCL_FLOAT64:
        return *(const double *)memcpy(&d, at, sizeof d);
    default:
        return (double)bf16_to_float(*(const bf16 *)memcpy(&b, at, sizeof b));
    }
}

/* The sum in rank order, in the precision that CPU's ring has. */
static void reduce_one(const struct collective *k, size_t i, unsigned char *to)
{
    const struct ncclComm *c = k->c;
    double d = 0;
    float f = 0;
    for (int r = 0; r < c->size; r++) {
        double x = number_at(k->header.type, c->meeting->slots[r].data + i * k->element);
        d = r ? d + x : x;
        f = r ? f + (float)x : (float)x;
    }
    if (k->header.reduction == NCCL_AVG)
        f /= (float)c->size;
    bf16 b = bf16_from_float(f);
    memcpy(to,
           k->header.type == NCCL_FLOAT64   ? (void *)&d
           : k->header.type == NCCL_FLOAT32 ? (void *)&f
                                            : (void *)&b,
           k->element);
}

static void read_chunk(const struct collective *k, size_t count)
{
    const struct ncclComm *c = k->c;
    const char *op = k->header.op;
    size_t own = (size_t)c->rank * k->header.count;
    if (strcmp(op, "all_gather") == 0)
        for (int r = 0; r < c->size; r++)
            memcpy(k->recv + ((size_t)r * k->header.count + k->done) * k->element,
                   c->meeting->slots[r].data, count * k->element);
    else if (strcmp(op, "broadcast") == 0)
        memcpy(k->recv + k->done * k->element, c->meeting->slots[k->header.root].data,
               count * k->element);
    else if (strcmp(op, "all_reduce") == 0)
        for (size_t i = 0; i < count; i++)
            reduce_one(k, i, k->recv + (k->done + i) * k->element);
    else
        for (size_t i = 0; i < count; i++)
            if (k->done + i >= own && k->done + i < own + k->header.count)
                reduce_one(k, i, k->recv + (k->done + i - own) * k->element);
}

static bool may_overlap(void)
{
    const char *order = getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
    int version;
    ncclGetVersion(&version);
    return version >= NCCL_ORDERS_LAUNCHES && order && strcmp(order, "1") == 0;
}

static void note_begin(const struct collective *k)
{
    struct owner *owner = k->c->owner;
    if (owner->runs && owner->runs != k->c && !may_overlap()) {
        fprintf(stderr, "fake NCCL: rank %d: %s of %s begins beside one of %s\n", k->c->rank,
                k->header.op, k->c->name, owner->runs->name);
        abort();
    }
    owner->runs = k->c;
}

static bool end(struct collective *k)
{
    if (k->c->owner->runs == k->c)
        k->c->owner->runs = NULL;
    free(k);
    return true;
}

/* Goes on as far as the others allow. True: it is over. */
static bool advance(void *arg, bool is_over)
{
    struct collective *k = arg;
    struct ncclComm *c = k->c;
    struct slot *mine = &c->meeting->slots[c->rank];
    if (k->is_first && is_meant("lose", c, k->header.number))
        raise(SIGKILL);
    if (k->is_first && is_meant("stop", c, k->header.number))
        raise(SIGSTOP);
    if (k->is_first && is_meant("fail", c, k->header.number))
        atomic_store(&c->error, REMOTE_ERROR);
    if (is_over || atomic_load(&c->is_aborted))
        return end(k);
    if (atomic_load(&c->error) || is_meant("hang", c, k->header.number))
        return false;
    if (k->is_first)
        note_begin(k);
    k->is_first = false;
    for (;;) {
        size_t most = CHUNK_BYTES / k->element, left = k->total - k->done;
        size_t count = left < most ? left : most;
        if (!k->is_written) {
            if (!all_have(c, 2 * c->chunks))
                return false;
            mine->header = k->header;
            if (count > 0)
                memcpy(mine->data, k->send + k->done * k->element, count * k->element);
            atomic_store(&mine->step, 2 * c->chunks + 1);
            k->is_written = true;
        }
        if (!all_have(c, 2 * c->chunks + 1))
            return false;
        check_headers(k);
        read_chunk(k, count);
        atomic_store(&mine->step, 2 * ++c->chunks);
        k->is_written = false;
        k->done += count;
        if (k->done == k->total)
            return end(k);
    }
}

/* ---- streams ---- */

typedef void put_on_stream(void *stream, bool (*advance)(void *, bool), void *arg);

static int find_emulation(struct dl_phdr_info *info, size_t size, void *ret_handle)
{
    (void)size;
    if (!strstr(info->dlpi_name, "libshoal_cuda.so"))
        return 0;
    *(void **)ret_handle = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    return 1;
}

static put_on_stream *stream_function(void)
{
    void *library = NULL;
    put_on_stream *put = NULL;
    dl_iterate_phdr(find_emulation, &library);
    if (library)
        *(void **)&put = dlsym(library, "emulation_put");
    return put;
}

static int put(struct ncclComm *c, const struct header *header, const void *send, void *recv,
               size_t total, void *stream)
{
    struct collective *k = calloc(1, sizeof *k);
    k->c = c;
    k->header = *header;
    k->header.number = c->numbers++;
    k->header.launch = setting("ordered") ? ++c->owner->launches : 0;
    k->send = send;
    k->recv = recv;
    k->element = element_bytes(header->type);
    k->total = total;
    k->is_first = true;
    if (stream)
        stream_function()(stream, advance, k);
    else
        while (!advance(k, false))
            usleep(WAIT_US);
    return NCCL_SUCCESS;
}

#define HEADER(name, ...) (&(struct header){.op = name, __VA_ARGS__})

/* ---- NCCL's names ---- */

EXPORTED int ncclGetVersion(int *version)
{
    const char *text = setting("version");
    *version = text ? atoi(text) : 22809;
    return NCCL_SUCCESS;
}

EXPORTED int ncclGetUniqueId(struct nccl_id *id);
EXPORTED int ncclGetUniqueId(struct nccl_id *id)
{
    static atomic_int count;
    memset(id, 0, sizeof *id);
    snprintf(id->bytes, sizeof id->bytes, "/shoal-fake-nccl-%d-%d", (int)getpid(),
             atomic_fetch_add(&count, 1));
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
    if (atomic_fetch_add(&c->meeting->joined, 1) + 1 == size)
        shm_unlink(c->name);
    pthread_mutex_lock(&lock);
    c->next = comms;
    comms = c;
    pthread_mutex_unlock(&lock);
    *ret_comm = c;
    return NCCL_IN_PROGRESS;
}

EXPORTED int ncclCommGetAsyncError(nccl_comm c, int *error);
EXPORTED int ncclCommGetAsyncError(nccl_comm c, int *error)
{
    *error = atomic_load(&c->error);
    if (!*error && atomic_load(&c->meeting->joined) < c->size)
        *error = NCCL_IN_PROGRESS;
    return NCCL_SUCCESS;
}

EXPORTED int ncclCommFinalize(nccl_comm c);
EXPORTED int ncclCommFinalize(nccl_comm c)
{
    (void)c;
    return NCCL_SUCCESS;
}

EXPORTED int ncclCommAbort(nccl_comm c);
EXPORTED int ncclCommAbort(nccl_comm c)
{
    const char *hangs = setting("abort_hangs");
    while (hangs && atoi(hangs) == c->rank)
        usleep(WAIT_US);
    shm_unlink(c->name); /* if not all have come */
    atomic_store(&c->is_aborted, true);
    return NCCL_SUCCESS;
}

EXPORTED int ncclCommDestroy(nccl_comm c);
EXPORTED int ncclCommDestroy(nccl_comm c)
{
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
    return put(c, HEADER("all_gather", .count = count, .type = type), send, recv, count, stream);
}

EXPORTED int ncclReduceScatter(const void *send, void *recv, size_t count, int type, int op,
                               nccl_comm c, void *stream);
EXPORTED int ncclReduceScatter(const void *send, void *recv, size_t count, int type, int op,
                               nccl_comm c, void *stream)
{
    return put(c, HEADER("reduce_scatter", .count = count, .type = type, .reduction = op), send,
               recv, count * (size_t)c->size, stream);
}

EXPORTED int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op,
                           nccl_comm c, void *stream);
EXPORTED int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op,
                           nccl_comm c, void *stream)
{
    return put(c, HEADER("all_reduce", .count = count, .type = type, .reduction = op), send, recv,
               count, stream);
}

EXPORTED int ncclBroadcast(const void *send, void *recv, size_t count, int type, int root,
                           nccl_comm c, void *stream);
EXPORTED int ncclBroadcast(const void *send, void *recv, size_t count, int type, int root,
                           nccl_comm c, void *stream)
{
    return put(c, HEADER("broadcast", .count = count, .type = type, .root = root), send, recv,
               count, stream);
}
