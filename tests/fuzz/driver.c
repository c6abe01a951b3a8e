/* Runs a fuzz target without clang: on every file of a corpus, then on mutations of them. The same
 * seed gives the same inputs on every machine. The target runs in a child process; if that dies,
 * the input it died of is written to a file and named. fuzz_NAME CORPUS_DIRECTORY
 * ITERATIONS SEED */
#include "tests/fuzz/fuzz.h"

#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_FILES 256
#define MAX_BYTES (256 << 10)

struct input {
    uint8_t *bytes;
    size_t size;
};

struct corpus {
    struct input files[MAX_FILES];
    size_t count;
};

/* splitmix64, Steele, Lea and Flood 2014 */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static size_t below(uint64_t *state, size_t bound)
{
    return bound ? draw(state) % bound : 0;
}

static void read_file(struct corpus *corpus, const char *path)
{
    auto_fclose FILE *file = fopen(path, "rb");
    if (!file || corpus->count == MAX_FILES)
        return;
    struct input *input = &corpus->files[corpus->count++];
    input->bytes = xmalloc(MAX_BYTES);
    input->size = fread(input->bytes, 1, MAX_BYTES, file);
}

static void read_corpus(struct corpus *corpus, const char *directory)
{
    struct dirent **entries = NULL;
    int count = scandir(directory, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        auto_free char *path = xasprintf("%s/%s", directory, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            read_file(corpus, path);
        free(entries[i]);
    }
    free(entries);
}

/* Overwrites, cuts out, repeats or takes over a stretch of bytes. `input` has room
 * for MAX_BYTES. */
static void mutate(struct input *input, const struct corpus *corpus, uint64_t *random)
{
    static const uint8_t telling[] = {0, 0xff, 0x7f, 0x80, '\n', ' ', ':', '-', '{', '[', '"', '9'};
    size_t at = below(random, input->size + 1), length = 1 + below(random, 16);
    const struct input *other = &corpus->files[below(random, corpus->count)];
    size_t from = below(random, other->size + 1);
    switch (below(random, 6)) {
    case 0: /* flip a bit */
        if (at < input->size)
            input->bytes[at] ^= (uint8_t)(1u << below(random, 8));
        break;
    case 1: /* put in a byte that means something to many formats */
        if (at < input->size)
            input->bytes[at] = telling[below(random, sizeof telling)];
        break;
    case 2: /* cut off */
        input->size = at;
        break;
    case 3: /* cut out */
        if (at + length <= input->size) {
            memmove(input->bytes + at, input->bytes + at + length, input->size - at - length);
            input->size -= length;
        }
        break;
    case 4: /* double the stretch from `at` on */
        if (at + length <= input->size && input->size + length <= MAX_BYTES) {
            memmove(input->bytes + at + length, input->bytes + at, input->size - at);
            input->size += length;
        }
        break;
    case 5: /* the rest from another file */
        if (at + other->size - from <= MAX_BYTES) {
            memcpy(input->bytes + at, other->bytes + from, other->size - from);
            input->size = at + other->size - from;
        }
        break;
    }
}

/* In a block of the exact size, so that a read beyond it is seen. */
static void run_exactly(const struct input *input)
{
    auto_free uint8_t *exact = xmalloc(input->size);
    memcpy(exact, input->bytes, input->size);
    LLVMFuzzerTestOneInput(exact, input->size);
}

/* The child: tells in shared memory which input it is at. */
static void run_all(const struct corpus *corpus, int64_t iterations, uint64_t seed,
                    struct input *input)
{
    for (size_t i = 0; i < corpus->count; i++) {
        input->size = corpus->files[i].size;
        memcpy(input->bytes, corpus->files[i].bytes, input->size);
        run_exactly(input);
    }
    for (int64_t i = 0; i < iterations; i++) {
        uint64_t random = seed * 1000003 + (uint64_t)i;
        const struct input *file = &corpus->files[below(&random, corpus->count)];
        input->size = file->size;
        memcpy(input->bytes, file->bytes, file->size);
        for (size_t n = 1 + below(&random, 4); n > 0; n--)
            mutate(input, corpus, &random);
        run_exactly(input);
    }
}

static void save(const char *path, const struct input *input)
{
    auto_fclose FILE *file = fopen(path, "wb");
    if (file && fwrite(input->bytes, 1, input->size, file) == input->size)
        fprintf(stderr, "# the input is in %s\n", path);
}

int main(int argc, char **argv)
{
    int64_t iterations, seed;
    if (argc != 4 || !str_to_i64(argv[2], 0, INT64_MAX, &iterations) ||
        !str_to_i64(argv[3], 0, INT64_MAX, &seed)) {
        fprintf(stderr, "usage: %s CORPUS_DIRECTORY ITERATIONS SEED\n", argv[0]);
        return 2;
    }
    struct corpus *corpus = xcalloc(1, sizeof *corpus);
    read_corpus(corpus, argv[1]);
    struct input *shared = mmap(NULL, sizeof *shared + MAX_BYTES, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (corpus->count == 0 || shared == MAP_FAILED) {
        fprintf(stderr, "%s: no seed inputs in %s\n", argv[0], argv[1]);
        return 2;
    }
    shared->bytes = (uint8_t *)(shared + 1);
    int status = 0;
    pid_t child = fork();
    if (child == 0) /* it ends as we do, with nothing left, so that leaks of the target are seen */
        run_all(corpus, iterations, (uint64_t)seed, shared);
    else if (child < 0 || waitpid(child, &status, 0) != child)
        status = -1;
    bool survived = status == 0;
    if (!survived) {
        auto_free char *path = xasprintf("%s.crash", argv[0]);
        save(path, shared);
    }
    for (size_t i = 0; i < corpus->count; i++)
        free(corpus->files[i].bytes);
    free(corpus);
    return survived ? 0 : 1;
}
