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
    struct peers peers; /* of an exchange, in place of send and recv */
    void *stream;
    size_t element, total, done; /* elements of `send`; of an exchange: to each rank */
    bool is_written, is_first;
    struct window *from, *to; /* NULL: its buffer lies in none */
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
           a->launch == b->launch && memcmp(&a->send, &b->send, sizeof a->send) == 0 &&
           memcmp(&a->recv, &b->recv, sizeof a->recv) == 0;
}

static void check_headers(const struct collective *k)
{
    const struct meeting *m = k->c->meeting;
    for (int r = 0; r < k->c->size; r++) {
        const struct header *theirs = &m->slots[r].header, *mine = &k->header;
        if (are_alike(theirs, mine))
            continue;
        fake_nccl_end("rank %d runs %s %lu of %lu elements of type %d as number %lu, rank %d %s "
                      "%lu of %lu of type %d as number %lu; from window %lu at %lu to %lu at %lu, "
                      "and from %lu at %lu to %lu at %lu",
                      k->c->rank, mine->op, mine->number, mine->count, mine->type, mine->launch, r,
                      theirs->op, theirs->number, theirs->count, theirs->type, theirs->launch,
                      mine->send.window, mine->send.offset, mine->recv.window, mine->recv.offset,
                      theirs->send.window, theirs->send.offset, theirs->recv.window,
                      theirs->recv.offset);
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

static bool is_exchange(const struct header *h)
{
    return strcmp(h->op, "exchange") == 0;
}

/* Of an exchange the chunks of all ranks lie side by side. */
static void write_chunk(const struct collective *k, unsigned char *to, size_t count)
{
    size_t done = k->done * k->element, bytes = count * k->element;
    if (!is_exchange(&k->header))
        memcpy(to, k->send + done, bytes);
    for (int r = 0; is_exchange(&k->header) && r < k->c->size; r++)
        memcpy(to + (size_t)r * bytes, k->peers.send[r] + done, bytes);
}

static void read_chunk(const struct collective *k, size_t count)
{
    const struct ncclComm *c = k->c;
    const char *op = k->header.op;
    size_t own = (size_t)c->rank * k->header.count;
    if (is_exchange(&k->header))
        for (int r = 0; r < c->size; r++)
            memcpy(k->peers.recv[r] + k->done * k->element,
                   c->meeting->slots[r].data + (size_t)c->rank * count * k->element,
                   count * k->element);
    else if (strcmp(op, "all_gather") == 0)
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
    if (k->from)
        __atomic_fetch_sub(&k->from->users, 1, __ATOMIC_SEQ_CST);
    if (k->to)
        __atomic_fetch_sub(&k->to->users, 1, __ATOMIC_SEQ_CST);
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
        if (is_exchange(&k->header))
            most /= (size_t)c->size;
        size_t count = left < most ? left : most;
        if (!k->is_written) {
            if (!all_have(c, 2 * c->chunks))
                return false;
            mine->header = k->header;
            if (count > 0)
                write_chunk(k, mine->data, count);
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

/* NULL: there is no emulated GPU. */
static void *emulations(const char *function)
{
    void *library = NULL;
    dl_iterate_phdr(find_emulation, &library);
    return library ? dlsym(library, function) : NULL;
}

static put_on_stream *stream_function(void)
{
    put_on_stream *put;
    *(void **)&put = emulations("emulation_put");
    return put;
}

void *fake_nccl_alloc(size_t bytes)
{
    void *(*alloc)(size_t bytes);
    *(void **)&alloc = emulations("emulation_alloc");
    return alloc ? alloc(bytes) : aligned_alloc(NCCL_MEMORY_GRANULE, bytes);
}

void fake_nccl_free(void *memory)
{
    void (*release)(void *memory);
    *(void **)&release = emulations("emulation_free");
    if (release)
        release(memory);
    else
        free(memory);
}

static void must_be_registered(struct ncclComm *c, const void *memory, size_t bytes)
{
    const unsigned char *begin = memory;
    for (int i = 0; i < RANGES; i++)
        if (c->registered[i].begin && c->registered[i].begin <= begin &&
            begin + bytes <= c->registered[i].end)
            return;
    uint64_t offset;
    if (fake_nccl_window_of(c, memory, bytes, &offset)) /* registered with it */
        return;
    fprintf(stderr, "fake NCCL: %zu bytes of a collective of %s are not registered\n", bytes,
            c->name);
    abort();
}

static struct window *use_window(struct ncclComm *c, const void *memory, size_t bytes,
                                 struct place *ret_place)
{
    struct window *w = fake_nccl_window_of(c, memory, bytes, &ret_place->offset);
    ret_place->window = w ? (uint64_t)w->number : 0;
    if (w)
        __atomic_fetch_add(&w->users, 1, __ATOMIC_SEQ_CST);
    return w;
}

/* Where its buffers lie, which all ranks compare. */
static void find_windows(struct collective *k)
{
    struct ncclComm *c = k->c;
    struct header *h = &k->header;
    size_t send = k->total * k->element, recv = h->count * k->element;
    uint64_t offset;
    if (strcmp(h->op, "all_gather") == 0)
        recv *= (size_t)c->size;
    for (int r = 0; is_exchange(h) && r < c->size; r++)
        if (fake_nccl_window_of(c, k->peers.send[r], h->count * k->element, &offset) ||
            fake_nccl_window_of(c, k->peers.recv[r], h->count * k->element, &offset))
            fake_nccl_end("%s sends or receives in a window", c->name);
    if (is_exchange(h))
        return;
    k->from = use_window(c, k->send, send, &h->send);
    k->to = use_window(c, k->recv, recv, &h->recv);
    c->windowed += k->from && k->to;
    if (k->from && k->to && h->reduction != NCCL_SUM)
        fake_nccl_end("a mean of %s lies in windows, which have sums alone", c->name);
}

static void check_memory(const struct collective *k)
{
    struct ncclComm *c = k->c;
    const struct header *h = &k->header;
    bool gathers = strcmp(h->op, "all_gather") == 0;
    size_t part = h->count * k->element;
    if (!fake_nccl_setting("registered"))
        return;
    for (int r = 0; is_exchange(h) && r < c->size; r++) {
        must_be_registered(c, k->peers.send[r], part);
        must_be_registered(c, k->peers.recv[r], part);
    }
    if (gathers || strcmp(h->op, "reduce_scatter") == 0) {
        must_be_registered(c, k->send, k->total * k->element);
        must_be_registered(c, k->recv, gathers ? part * (size_t)c->size : part);
    }
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

/* what: all that the caller knows of it. */
static int put(struct ncclComm *c, const struct collective *what)
{
    const struct header *header = &what->header;
    fake_nccl_enter(c, header->op);
    const char *refused = fake_nccl_setting("refuse");
    if (refused && strtoull(refused, NULL, 10) == c->numbers) {
        c->numbers++;
        return fake_nccl_leave(c, NCCL_INVALID_USAGE);
    }
    struct collective *k = calloc(1, sizeof *k);
    *k = *what;
    k->c = c;
    k->header.number = c->numbers++;
    k->header.launch = fake_nccl_setting("ordered") ? ++c->owner->launches : 0;
    k->element = element_bytes(header->type);
    k->is_first = true;
    check_memory(k);
    find_windows(k);
    if (c->has_launch || c->registering) {
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

int fake_nccl_put(struct ncclComm *c, const struct header *header, const void *send, void *recv,
                  size_t total, void *stream)
{
    return put(
        c, &(struct collective){
               .header = *header, .send = send, .recv = recv, .total = total, .stream = stream});
}

/* ---- sends and receives ---- */

int fake_nccl_add_peer(struct ncclComm *c, int peer, const void *send, void *recv, size_t count,
                       int type, void *stream)
{
    struct peers *p = &c->peers;
    fake_nccl_enter(c, send ? "Send" : "Recv");
    bool is_first = p->sends + p->recvs == 0;
    bool fits = is_first || (p->count == count && p->type == type && p->stream == stream);
    if (peer < 0 || peer >= c->size || !fits ||
        (send ? p->send[peer] != NULL : p->recv[peer] != NULL)) {
        fprintf(stderr,
                "fake NCCL: rank %d: a send or receive with rank %d does not fit to those before\n",
                c->rank, peer);
        abort();
    }
    p->count = count, p->type = type, p->stream = stream;
    if (send)
        p->send[peer] = send, p->sends++;
    else
        p->recv[peer] = recv, p->recvs++;
    return fake_nccl_leave(c, NCCL_SUCCESS);
}

int fake_nccl_put_peers(struct ncclComm *c)
{
    const struct peers p = c->peers;
    c->peers = (struct peers){0};
    if (p.sends != c->size || p.recvs != c->size) {
        fprintf(stderr, "fake NCCL: rank %d has %d sends and %d receives in a group of %d ranks\n",
                c->rank, p.sends, p.recvs, c->size);
        abort();
    }
    return put(c,
               &(struct collective){.header = {.op = "exchange", .count = p.count, .type = p.type},
                                    .peers = p,
                                    .total = p.count,
                                    .stream = p.stream});
}
