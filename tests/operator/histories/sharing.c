#include "tests/operator/histories/sharing.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

struct sharing {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int processes, waiting;
    atomic_bool is_wanted;
    bool is_offered, is_done;
    size_t all_bytes, head_bytes, body_max_bytes, body_bytes;
    unsigned char bytes[]; /* the head, then the body */
};

struct sharing *sharing_open(int processes, size_t head_bytes, size_t body_max_bytes)
{
    size_t all_bytes = sizeof(struct sharing) + head_bytes + body_max_bytes;
    struct sharing *sharing = mmap(NULL, all_bytes, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert(sharing != MAP_FAILED);
    pthread_mutexattr_t of_mutex;
    pthread_mutexattr_init(&of_mutex);
    pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&sharing->mutex, &of_mutex);
    pthread_mutexattr_destroy(&of_mutex);
    pthread_condattr_t of_cond;
    pthread_condattr_init(&of_cond);
    pthread_condattr_setpshared(&of_cond, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&sharing->changed, &of_cond);
    pthread_condattr_destroy(&of_cond);
    sharing->processes = processes;
    sharing->all_bytes = all_bytes;
    sharing->head_bytes = head_bytes;
    sharing->body_max_bytes = body_max_bytes;
    return sharing;
}

/* Processes that were ended may still be waiting, as far as it knows: nothing is destroyed. */
void sharing_close(struct sharing *sharing)
{
    munmap(sharing, sharing->all_bytes);
}

bool sharing_is_wanted(const struct sharing *sharing)
{
    return atomic_load_explicit(&sharing->is_wanted, memory_order_relaxed);
}

static void note(struct sharing *sharing)
{
    sharing->is_wanted = sharing->waiting > 0 && !sharing->is_offered;
    pthread_cond_broadcast(&sharing->changed);
}

void sharing_offer(struct sharing *sharing, const void *head, const void *body, size_t body_bytes)
{
    pthread_mutex_lock(&sharing->mutex);
    while (sharing->is_offered) /* by another one, just now */
        pthread_cond_wait(&sharing->changed, &sharing->mutex);
    assert(body_bytes <= sharing->body_max_bytes);
    memcpy(sharing->bytes, head, sharing->head_bytes);
    memcpy(sharing->bytes + sharing->head_bytes, body, body_bytes);
    sharing->body_bytes = body_bytes;
    sharing->is_offered = true;
    note(sharing);
    pthread_mutex_unlock(&sharing->mutex);
}

bool sharing_take(struct sharing *sharing, void *ret_head, void *ret_body, size_t *ret_body_bytes)
{
    pthread_mutex_lock(&sharing->mutex);
    sharing->waiting++;
    sharing->is_done |= sharing->waiting == sharing->processes && !sharing->is_offered;
    note(sharing);
    while (!sharing->is_offered && !sharing->is_done)
        pthread_cond_wait(&sharing->changed, &sharing->mutex);
    bool taken = sharing->is_offered;
    if (taken) {
        memcpy(ret_head, sharing->bytes, sharing->head_bytes);
        memcpy(ret_body, sharing->bytes + sharing->head_bytes, sharing->body_bytes);
        *ret_body_bytes = sharing->body_bytes;
        sharing->is_offered = false;
        sharing->waiting--;
        note(sharing);
    }
    pthread_mutex_unlock(&sharing->mutex);
    return taken;
}
