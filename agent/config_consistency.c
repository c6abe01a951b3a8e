#include "agent/config_consistency.h"

#include "base/contract.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { SHOWN_BYTES = 40 }; /* of a value: two of them and a key fit into one value of the store */

/* A name on the wire, the same since 0.1.0: ranks of two versions compare their configurations, or
 * learn at once that they cannot. Under another name each would wait for a key that nobody sets. */
#define KEY "alike/%s/%d"

struct shared_config {
    struct config_entry *entries; /* those that must match */
    int count;
    char digest[80]; /* "COUNT keys HASH VERSION"; 0.1.0 has no VERSION */
};

/* A long value is shortened to its beginning and a hash of the whole. */
static const char *displayed(struct arena *arena, const struct config_entry *entry)
{
    if (entry->is_path)
        return entry->value[0] ? "given" : "not given";
    size_t bytes = strlen(entry->value);
    if (bytes <= SHOWN_BYTES)
        return entry->value;
    return arena_printf(arena, "%.16s... (xxh64 %016llx)", entry->value,
                        (unsigned long long)XXH64(entry->value, bytes, 0));
}

static void collect_entries(const struct config *config, struct arena *arena,
                            struct shared_config *shared_config)
{
    struct config_entry *all;
    int count = config_entries(config, arena, &all);
    auto_str struct str text;
    str_init(&text, 256 * 1024);
    *shared_config =
        (struct shared_config){.entries = arena_array(arena, struct config_entry, count)};
    for (int i = 0; i < count; i++) {
        if (!all[i].ranks_match)
            continue;
        all[i].value = displayed(arena, &all[i]);
        shared_config->entries[shared_config->count++] = all[i];
        str_printf(&text, "%s=%s\n", all[i].key, all[i].value);
    }
    snprintf(shared_config->digest, sizeof shared_config->digest, "%d keys %016llx %s",
             shared_config->count, (unsigned long long)XXH64(str_text(&text), text.length, 0),
             SHOAL_VERSION);
}

static int publish(struct store *store, const char *name, int number, const char *value,
                   struct error *err)
{
    char key[STORE_KEY_MAX];
    snprintf(key, sizeof key, KEY, name, number);
    return store->fn->set(store, key, value, err);
}

static int await(struct store *store, const char *name, int number, int timeout_ms, char *ret_value,
                 struct error *err)
{
    char key[STORE_KEY_MAX];
    snprintf(key, sizeof key, KEY, name, number);
    return store->fn->get(store, key, timeout_ms, ret_value, err);
}

/* Rank 0's part: publishes its entries, collects every rank's first difference, and publishes the
 * verdict. */
static int compare_all(const struct shared_config *ours, struct store *store, int size,
                       int timeout_ms, char *ret_verdict, struct error *err)
{
    char found[STORE_VALUE_MAX];
    ret_verdict[0] = '\0';
    for (int i = 0; i < ours->count; i++)
        if (publish(store, "value", i, ours->entries[i].value, err) < 0)
            return -1;
    if (publish(store, "digest", 0, ours->digest, err) < 0)
        return -1;
    for (int r = 1; r < size; r++) {
        if (await(store, "rank", r, timeout_ms, found, err) < 0)
            return -1;
        if (!ret_verdict[0])
            memcpy(ret_verdict, found, sizeof found);
    }
    return publish(store, "verdict", 0, ret_verdict, err);
}

/* After a difference rank 0 exits, and the store with it. So it waits until every rank has read the
 * verdict: otherwise a rank could only report that rank 0 has left. A rank that fails to
 * acknowledge has an error of its own. */
static void await_acknowledgements(struct store *store, int size, int timeout_ms)
{
    char nothing[STORE_VALUE_MAX];
    struct error err;
    for (int r = 1; r < size; r++)
        if (await(store, "heard", r, timeout_ms, nothing, &err) < 0)
            return;
}

/* Of the agent that has made the digest. */
static void read_version(const char *digest, char ret_version[64])
{
    if (sscanf(digest, "%*d keys %*s %63s", ret_version) != 1)
        snprintf(ret_version, 64, "an older one");
}

static int find_difference(const struct shared_config *ours, struct store *store, int rank,
                           int timeout_ms, char *ret_found, struct error *err)
{
    char value[STORE_VALUE_MAX];
    if (await(store, "digest", 0, timeout_ms, value, err) < 0)
        return -1;
    ret_found[0] = '\0';
    bool differs = strcmp(value, ours->digest) != 0;
    char theirs[64];
    read_version(value, theirs);
    bool comparable = strtol(value, NULL, 10) == ours->count && strcmp(theirs, SHOAL_VERSION) == 0;
    for (int i = 0; differs && comparable && !ret_found[0] && i < ours->count; i++) {
        const struct config_entry *entry = &ours->entries[i];
        if (await(store, "value", i, timeout_ms, value, err) < 0)
            return -1;
        if (strcmp(value, entry->value) != 0)
            snprintf(ret_found, STORE_VALUE_MAX, "%.64s: rank %d has '%.48s', rank 0 has '%.48s'",
                     entry->key, rank, entry->value, value);
    }
    if (differs && !ret_found[0])
        snprintf(ret_found, STORE_VALUE_MAX, "rank %d is of version %s, rank 0 of %s", rank,
                 SHOAL_VERSION, theirs);
    return 0;
}

static int compare_with_rank_0(const struct shared_config *ours, struct store *store, int rank,
                               int timeout_ms, char *ret_verdict, struct error *err)
{
    char found[STORE_VALUE_MAX];
    if (find_difference(ours, store, rank, timeout_ms, found, err) < 0 ||
        publish(store, "rank", rank, found, err) < 0 ||
        await(store, "verdict", 0, timeout_ms, ret_verdict, err) < 0)
        return -1;
    return ret_verdict[0] ? publish(store, "heard", rank, "", err) : 0;
}

int config_consistency_check(const struct config *config, struct store *store, int rank, int size,
                             int timeout_ms, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    struct shared_config ours;
    char verdict[STORE_VALUE_MAX];
    collect_entries(config, arena, &ours);
    int result = rank == 0 ? compare_all(&ours, store, size, timeout_ms, verdict, err)
                           : compare_with_rank_0(&ours, store, rank, timeout_ms, verdict, err);
    if (result < 0)
        return error_wrap(err, "comparing the ranks' configurations");
    if (!verdict[0])
        return 0;
    if (rank == 0)
        await_acknowledgements(store, size, timeout_ms);
    error_set(err, ERR_CONFIG, "%s; give all ranks the same", verdict);
    err->shared = true;
    return -1;
}
