#include "operator/job/names.h"

#include "base/contract.h"
#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
#include <openssl/sha.h>
#include <string.h>

const char *names_replica_type(enum replica_type type)
{
    return type == REPLICA_MASTER ? "Master" : "Worker";
}

const char *names_replica_label(enum replica_type type)
{
    return type == REPLICA_MASTER ? "master" : "worker";
}

const char *names_condition(enum condition_type type)
{
    static const char *const names[] = {"Created",   "Running", "Restarting", "Suspended",
                                        "Succeeded", "Failed",  "Waiting"};
    return names[type];
}

static char *put(char *at, const char *text)
{
    size_t bytes = strlen(text);
    return (char *)memcpy(at, text, bytes) + bytes;
}

/* Not by printf: a pass may write as many as there are pods. */
void names_put_child(char *at, const struct job *job, enum replica_type type, int32_t index)
{
    assert(index >= 0);
    at = put(put(put(put(at, job->name), "-"), names_replica_label(type)), "-");
    char digits[10]; /* the last one first */
    size_t count = 0;
    for (int32_t left = index; count == 0 || left; left /= 10)
        digits[count++] = (char)('0' + left % 10);
    while (count)
        *at++ = digits[--count];
    *at = '\0';
}

const char *names_child(struct arena *arena, const struct job *job, enum replica_type type,
                        int32_t index)
{
    char *name = arena_alloc(arena, strlen(job->name) + NAMES_CHILD_BYTES);
    names_put_child(name, job, type, index);
    return name;
}

const char *names_workload(struct arena *arena, const struct job *job)
{
    const char *text = arena_printf(arena, API_KIND "\n" API_GROUP "\n%s\n%s", job->name, job->uid);
    unsigned char hash[SHA_DIGEST_LENGTH];
    SHA1((const unsigned char *)text, strlen(text), hash);
    return arena_printf(arena, "pytorchjob-%s-%02x%02x%x", job->name, hash[0], hash[1],
                        hash[2] >> 4);
}

/* The text behind a part that it begins with; NULL: it does not. */
static const char *behind(const char *text, const char *part)
{
    /* both are short: no call is worth it */
    for (; text && *part; part++)
        if (*text++ != *part)
            return NULL;
    return text;
}

bool names_is_child(const char *name, const struct job *job, enum replica_type type, int32_t index)
{
    const char *digits = behind(behind(behind(name, job->name), "-"), names_replica_label(type));
    digits = behind(digits, "-");
    if (!digits || index < 0)
        return false;
    /* from the last digit on */
    const char *at = digits + strlen(digits);
    uint32_t left = (uint32_t)index;
    do {
        if (at == digits || *--at != (char)('0' + left % 10))
            return false;
        left /= 10;
    } while (left);
    return at == digits;
}

/* The bytes before "-WORD" at the end of text[0..bytes); 0: it does not end so. */
static size_t without(const char *text, size_t bytes, const char *word)
{
    size_t length = strlen(word);
    bool ends = bytes > length + 1 && text[bytes - length - 1] == '-' &&
                memcmp(text + bytes - length, word, length) == 0;
    return ends ? bytes - length - 1 : 0;
}

size_t names_child_job(const char *name)
{
    const char *dash = strrchr(name, '-');
    if (!dash || !dash[1] || dash[1 + strspn(dash + 1, "0123456789")])
        return 0;
    for (int type = 0; type < REPLICA_TYPES; type++) {
        size_t bytes = without(name, (size_t)(dash - name), names_replica_label(type));
        if (bytes)
            return bytes;
    }
    return 0;
}

bool names_is_label(const char *name)
{
    size_t length = strlen(name);
    return length > 0 && length <= NAMES_LABEL_MAX_BYTES && name[0] != '-' &&
           name[length - 1] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

bool names_image_is(const char *image, const char *program)
{
    if (!image)
        return false;
    const char *name = str_after_last(image, '/');
    size_t bytes = strcspn(name, ":@");
    return bytes == strlen(program) && strncmp(name, program, bytes) == 0;
}
