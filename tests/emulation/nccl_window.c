/* Symmetric windows of the fake NCCL, and the memory that it lends. A breach of the rules of
 * agent/comm/comm_nccl.h ends the test, where NCCL would hang, or read and write what is not
 * meant. */
#include "tests/emulation/nccl_fake.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct loan {
    struct loan *next;
    struct range range;
} * loans;

/* ---- memory ---- */

/* lends_not=RANK, or RANK:TIMES, which is lent so many times before. */
static bool lends_no_more(void)
{
    static int lent;
    int rank, times = 0;
    const char *refused = fake_nccl_setting("lends_not");
    return refused && sscanf(refused, "%d:%d", &rank, &times) >= 1 &&
           rank == fake_nccl_this_rank() && __atomic_fetch_add(&lent, 1, __ATOMIC_SEQ_CST) >= times;
}

EXPORTED int ncclMemAlloc(void **ret_memory, size_t bytes);
EXPORTED int ncclMemAlloc(void **ret_memory, size_t bytes)
{
    const char *lends = fake_nccl_setting("lends");
    if ((lends && lends[0] == '0') || lends_no_more())
        return NCCL_UNHANDLED_CUDA_ERROR;
    if (bytes == 0 || bytes % NCCL_MEMORY_GRANULE != 0)
        fake_nccl_end("%zu bytes are rounded up, which nobody counts", bytes);
    unsigned char *memory = fake_nccl_alloc(bytes);
    if (!memory)
        return NCCL_UNHANDLED_CUDA_ERROR;
    struct loan *loan = calloc(1, sizeof *loan);
    loan->range = (struct range){memory, memory + bytes};
    pthread_mutex_lock(&lock);
    loan->next = loans;
    loans = loan;
    pthread_mutex_unlock(&lock);
    *ret_memory = memory;
    return NCCL_SUCCESS;
}

EXPORTED int ncclMemFree(void *memory);
EXPORTED int ncclMemFree(void *memory)
{
    fake_nccl_must_be_free(memory);
    pthread_mutex_lock(&lock);
    struct loan **at = &loans;
    while (*at && (*at)->range.begin != memory)
        at = &(*at)->next;
    struct loan *loan = *at;
    if (loan)
        *at = loan->next;
    pthread_mutex_unlock(&lock);
    if (!loan)
        fake_nccl_end("ncclMemFree of what ncclMemAlloc has not given");
    free(loan);
    fake_nccl_free(memory);
    return NCCL_SUCCESS;
}

/* For tests: pieces of memory that have not come back. */
EXPORTED int fake_nccl_loans(void);
EXPORTED int fake_nccl_loans(void)
{
    int count = 0;
    pthread_mutex_lock(&lock);
    for (const struct loan *loan = loans; loan; loan = loan->next)
        count++;
    pthread_mutex_unlock(&lock);
    return count;
}

static bool is_lent(struct range range)
{
    bool is = false;
    pthread_mutex_lock(&lock);
    for (const struct loan *loan = loans; loan; loan = loan->next)
        is |= loan->range.begin <= range.begin && range.end <= loan->range.end;
    pthread_mutex_unlock(&lock);
    return is;
}

/* ---- registering ---- */

static bool overlap(struct range a, struct range b)
{
    return a.begin && b.begin && a.begin < b.end && b.begin < a.end;
}

static void check_registration(const struct ncclComm *c, struct range range, int flags)
{
    const char *name = c->name;
    int version = fake_nccl_version();
    if (version < NCCL_HAS_WINDOWS)
        fake_nccl_end("NCCL %d has no windows", version);
    if (flags != NCCL_WIN_COLL_SYMMETRIC)
        fake_nccl_end("a window of %s is not symmetric", name);
    if (!is_lent(range))
        fake_nccl_end("a window of %s is not memory of ncclMemAlloc", name);
    for (int i = 0; i < RANGES; i++)
        if (overlap(c->registered[i], range) || overlap(c->windows[i].range, range))
            fake_nccl_end("memory of a window of %s is registered already", name);
    if (c->has_launch || c->registering)
        fake_nccl_end("a window of %s before the call before was waited for", name);
}

EXPORTED int ncclCommWindowRegister(nccl_comm c, void *memory, size_t bytes, void **window,
                                    int flags);
EXPORTED int ncclCommWindowRegister(nccl_comm c, void *memory, size_t bytes, void **window,
                                    int flags)
{
    const struct range range = {memory, (unsigned char *)memory + bytes};
    const char *refused = fake_nccl_setting("window_refused");
    fake_nccl_enter(c, "WindowRegister");
    *window = NULL;
    check_registration(c, range, flags);
    if (refused && atoi(refused) == c->rank)
        return fake_nccl_leave(c, NCCL_INVALID_USAGE);
    if (c->window_count == RANGES)
        fake_nccl_end("%s has more windows than the fake has room for", c->name);
    struct window *w = &c->windows[c->window_count++];
    w->number = c->window_count;
    w->ret_handle = window;
    range_set(&w->range, range);
    c->registering = w;
    struct slot *mine = &c->meeting->slots[c->rank];
    mine->window_bytes[w->number - 1] = bytes;
    __atomic_store_n(&mine->windows, (unsigned long)w->number, __ATOMIC_SEQ_CST);
    /* as the real ones do, though a thread of theirs still works */
    bool says_done = fake_nccl_version() >= NCCL_WINDOW_SAYS_DONE;
    return fake_nccl_leave(c, says_done ? NCCL_SUCCESS : NCCL_IN_PROGRESS);
}

bool fake_nccl_is_registering(struct ncclComm *c)
{
    struct window *w = c->registering;
    const char *none = fake_nccl_setting("no_windows");
    if (!w)
        return false;
    for (int r = 0; r < c->size; r++)
        if (__atomic_load_n(&c->meeting->slots[r].windows, __ATOMIC_SEQ_CST) <
            (unsigned long)w->number)
            return true;
    for (int r = 0; r < c->size; r++) {
        size_t bytes = (size_t)(w->range.end - w->range.begin);
        size_t theirs = c->meeting->slots[r].window_bytes[w->number - 1];
        if (theirs != bytes)
            fake_nccl_end("window %d of %s has %zu bytes on rank %d, %zu on rank %d", w->number,
                          c->name, bytes, c->rank, theirs, r);
    }
    c->registering = NULL;
    if (none && atoi(none) == c->rank)
        range_set(&w->range, (struct range){NULL, NULL});
    else
        *w->ret_handle = w;
    return false;
}

EXPORTED int ncclCommWindowDeregister(nccl_comm c, void *window);
EXPORTED int ncclCommWindowDeregister(nccl_comm c, void *window)
{
    fake_nccl_enter(c, "WindowDeregister");
    struct window *w = window;
    if (c->is_aborted || w < c->windows || w >= c->windows + c->window_count || !w->range.begin)
        fake_nccl_end("%s has no such window to deregister", c->name);
    if (__atomic_load_n(&w->users, __ATOMIC_SEQ_CST) > 0)
        fake_nccl_end("window %d of %s is deregistered while a collective uses it", w->number,
                      c->name);
    range_set(&w->range, (struct range){NULL, NULL});
    return fake_nccl_leave(c, NCCL_SUCCESS);
}

/* ---- what lies there ---- */

bool fake_nccl_has_windows(const struct ncclComm *c)
{
    for (int i = 0; i < c->window_count; i++)
        if (c->windows[i].range.begin)
            return true;
    return false;
}

struct window *fake_nccl_window_of(struct ncclComm *c, const void *memory, size_t bytes,
                                   uint64_t *ret_offset)
{
    const struct range range = {memory, (const unsigned char *)memory + bytes};
    *ret_offset = 0;
    for (int i = 0; i < c->window_count && bytes > 0; i++) {
        struct window *w = &c->windows[i];
        if (!overlap(w->range, range))
            continue;
        if (range.begin < w->range.begin || range.end > w->range.end)
            fake_nccl_end("a buffer of %s lies partly in its window %d", c->name, w->number);
        *ret_offset = (uint64_t)(range.begin - w->range.begin);
        return w;
    }
    return NULL;
}
