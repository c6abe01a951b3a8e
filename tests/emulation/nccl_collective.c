/* A collective of the fake NCCL: between ranks, through what they share. */
#include "tests/emulation/nccl_fake.h"

#include "kernels/dtype.h"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_meant(const char *name, const struct ncclComm *c, uint64_t number)
{
    const char *text = fake_nccl_setting(name);
    int rank = -1;
    unsigned long n = 0;
    return text && sscanf(text, "%d:%lu", &rank, &n) == 2 && rank == c->rank && n == number;
}

struct collective {
    struct ncclComm *c;
    struct header header;
    const unsigned char *send;
    unsigned char *recv;
    void *stream;
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
        if (__atomic_load_n(&c->meeting->slots[r].step, __ATOMIC_SEQ_CST) < step)
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
    const char *order = getenv("NCCL_LAUNCH_ORDER_IMPLICIT"), *gpu = getenv("SHOAL_EMULATION");
    const char *text = fake_nccl_setting("version"), *driver = gpu ? strstr(gpu, "driver=") : NULL;
    int version = text ? atoi(text) : NCCL_ORDERS_LAUNCHES;
    return version >= NCCL_ORDERS_LAUNCHES && order && strcmp(order, "1") == 0 &&
           (!driver || atoi(driver + strlen("driver=")) >= NCCL_ORDERS_DRIVER);
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
    __atomic_fetch_sub(&k->c->under_way, 1, __ATOMIC_SEQ_CST);
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
        __atomic_store_n(&c->error, REMOTE_ERROR, __ATOMIC_SEQ_CST);
    if (is_over || __atomic_load_n(&c->is_aborted, __ATOMIC_SEQ_CST))
        return end(k);
    if (__atomic_load_n(&c->error, __ATOMIC_SEQ_CST) || is_meant("hang", c, k->header.number))
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
            __atomic_store_n(&mine->step, 2 * c->chunks + 1, __ATOMIC_SEQ_CST);
            k->is_written = true;
        }
        if (!all_have(c, 2 * c->chunks + 1))
            return false;
        check_headers(k);
        read_chunk(k, count);
        __atomic_store_n(&mine->step, 2 * ++c->chunks, __ATOMIC_SEQ_CST);
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

static void must_be_registered(const struct ncclComm *c, const void *memory, size_t bytes)
{
    const unsigned char *begin = memory;
    for (int i = 0; i < RANGES; i++)
        if (c->registered[i].begin && c->registered[i].begin <= begin &&
            begin + bytes <= c->registered[i].end)
            return;
    fprintf(stderr, "fake NCCL: %zu bytes of a collective of %s are not registered\n", bytes,
            c->name);
    abort();
}

static void check_memory(const struct ncclComm *c, const struct header *h, const void *send,
                         const void *recv, size_t total)
{
    bool gathers = strcmp(h->op, "all_gather") == 0;
    size_t element = element_bytes(h->type), part = h->count * element;
    if (!fake_nccl_setting("registered") || (!gathers && strcmp(h->op, "reduce_scatter") != 0))
        return;
    must_be_registered(c, send, total * element);
    must_be_registered(c, recv, gathers ? part * (size_t)c->size : part);
}

/* As NCCL's own thread does for a communicator that does not block. */
static void *launch(void *arg)
{
    struct collective *k = arg;
    struct ncclComm *c = k->c;
    if (k->stream)
        stream_function()(k->stream, advance, k);
    else
        while (!advance(k, false))
            usleep(WAIT_US);
    __atomic_store_n(&c->is_launched, true, __ATOMIC_SEQ_CST);
    return NULL;
}

int fake_nccl_put(struct ncclComm *c, const struct header *header, const void *send, void *recv,
                  size_t total, void *stream)
{
    fake_nccl_enter(c, header->op);
    const char *refused = fake_nccl_setting("refuse");
    if (refused && strtoull(refused, NULL, 10) == c->numbers) {
        c->numbers++;
        return fake_nccl_leave(c, NCCL_INVALID_USAGE);
    }
    struct collective *k = calloc(1, sizeof *k);
    check_memory(c, header, send, recv, total);
    k->c = c;
    k->header = *header;
    k->header.number = c->numbers++;
    k->header.launch = fake_nccl_setting("ordered") ? ++c->owner->launches : 0;
    k->send = send;
    k->recv = recv;
    k->stream = stream;
    k->element = element_bytes(header->type);
    k->total = total;
    k->is_first = true;
    if (c->has_launch) {
        fprintf(stderr, "fake NCCL: %s of %s before the one before was waited for\n", header->op,
                c->name);
        abort();
    }
    __atomic_fetch_add(&c->under_way, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&c->is_launched, false, __ATOMIC_SEQ_CST);
    c->has_launch = true;
    pthread_create(&c->launch, NULL, launch, k);
    return fake_nccl_leave(c, NCCL_IN_PROGRESS);
}
