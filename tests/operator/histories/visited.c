#include "tests/operator/histories/visited.h"

#include <assert.h>
#include <pthread.h>
#include <sys/mman.h>

/* A table of each size, of which one is in use: the processes know the addresses of all. */
enum { FIRST_BITS = 12, LAST_BITS = 28, SIZES = LAST_BITS - FIRST_BITS + 1 };

struct entry {
    uint64_t hash; /* 0: none; its lowest bits are flags */
    uint64_t searched;
};

struct visited {
    pthread_mutex_t mutex;
    int bits; /* the table in use has so many entries, as a power of two */
    size_t count;
    struct entry *tables[SIZES];
};

static size_t size_of(int bits)
{
    return (size_t)1 << bits;
}

/* All zero, and without memory before it is used. */
static void *map_shared(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);
    assert(at != MAP_FAILED);
    return at;
}

struct visited *visited_open(void)
{
    struct visited *visited = map_shared(sizeof *visited);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&visited->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    visited->bits = FIRST_BITS;
    for (int bits = FIRST_BITS; bits <= LAST_BITS; bits++)
        visited->tables[bits - FIRST_BITS] = map_shared(size_of(bits) * sizeof(struct entry));
    return visited;
}

void visited_close(struct visited *visited)
{
    for (int bits = FIRST_BITS; bits <= LAST_BITS; bits++)
        munmap(visited->tables[bits - FIRST_BITS], size_of(bits) * sizeof(struct entry));
    pthread_mutex_destroy(&visited->mutex);
    munmap(visited, sizeof *visited);
}

static struct entry *find(const struct visited *visited, uint64_t hash)
{
    struct entry *table = visited->tables[visited->bits - FIRST_BITS];
    size_t last = size_of(visited->bits) - 1, i = (hash >> 8) & last;
    while (table[i].hash && (table[i].hash | VISITED_FLAGS) != (hash | VISITED_FLAGS))
        i = (i + 1) & last;
    return &table[i];
}

static void grow(struct visited *visited)
{
    size_t size = size_of(visited->bits);
    struct entry *old = visited->tables[visited->bits - FIRST_BITS];
    assert(visited->bits < LAST_BITS);
    visited->bits++;
    for (size_t i = 0; i < size; i++)
        if (old[i].hash)
            *find(visited, old[i].hash) = old[i];
    int given_back = madvise(old, size * sizeof *old, MADV_REMOVE);
    assert(given_back == 0);
    (void)given_back;
}

/* The state's entry, made if there is none. Called under the mutex. */
static struct entry *meet(struct visited *visited, uint64_t hash)
{
    if (visited->count >= size_of(visited->bits) / 4 * 3)
        grow(visited);
    hash |= VISITED_FLAGS + 1; /* is not 0 */
    struct entry *entry = find(visited, hash);
    if (!entry->hash) {
        entry->hash = hash & ~VISITED_FLAGS;
        visited->count++;
    }
    return entry;
}

bool visited_claim(struct visited *visited, uint64_t hash, int index, uint64_t bits)
{
    pthread_mutex_lock(&visited->mutex);
    struct entry *entry = meet(visited, hash);
    bool is_new = !(entry->searched >> index & 1);
    entry->searched |= bits;
    pthread_mutex_unlock(&visited->mutex);
    return is_new;
}

uint64_t visited_flags(struct visited *visited, uint64_t hash)
{
    pthread_mutex_lock(&visited->mutex);
    uint64_t flags = meet(visited, hash)->hash & VISITED_FLAGS;
    pthread_mutex_unlock(&visited->mutex);
    return flags;
}

void visited_set_flags(struct visited *visited, uint64_t hash, uint64_t flags)
{
    pthread_mutex_lock(&visited->mutex);
    meet(visited, hash)->hash |= flags;
    pthread_mutex_unlock(&visited->mutex);
}

size_t visited_count(const struct visited *visited)
{
    return visited->count;
}
