#include "tests/agent/comm_local.h"

#include "agent/comm/store_table.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

struct comm_local {
    struct store head;
    pthread_mutex_t mutex; /* guards table */
    pthread_cond_t added;
    struct store_table *table;
};

static int local_set(struct store *s, const char *key, const char *value, struct error *err)
{
    struct comm_local *group = (struct comm_local *)s;
    pthread_mutex_lock(&group->mutex);
    int result = store_table_set(group->table, key, value, err);
    pthread_cond_broadcast(&group->added);
    pthread_mutex_unlock(&group->mutex);
    return result;
}

static int local_get(struct store *s, const char *key, int timeout_ms, char *ret_value,
                     struct error *err)
{
    struct comm_local *group = (struct comm_local *)s;
    int64_t deadline_ms = clock_monotonic_ms() + timeout_ms;
    const char *value;
    pthread_mutex_lock(&group->mutex);
    while (!(value = store_table_get(group->table, key)) &&
           cond_wait_until(&group->added, &group->mutex, deadline_ms))
        ;
    if (value)
        snprintf(ret_value, STORE_VALUE_MAX, "%s", value);
    pthread_mutex_unlock(&group->mutex);
    return value ? 0 : error_set(err, ERR_TIMEOUT, "%s did not come within %d ms", key, timeout_ms);
}

static const struct store_functions functions = {.set = local_set, .get = local_get};

struct comm_local *comm_local_open(void)
{
    struct comm_local *group = xcalloc(1, sizeof *group);
    store_init(&group->head, &functions);
    snprintf(group->head.self_host, STORE_HOST_MAX, "127.0.0.1");
    snprintf(group->head.master_host, STORE_HOST_MAX, "127.0.0.1");
    snprintf(group->head.listen_host, STORE_HOST_MAX, "127.0.0.1");
    pthread_mutex_init(&group->mutex, NULL);
    cond_init(&group->added);
    group->table = store_table_open();
    return group;
}

void comm_local_close(struct comm_local *group)
{
    if (!group)
        return;
    store_table_close(group->table);
    pthread_cond_destroy(&group->added);
    pthread_mutex_destroy(&group->mutex);
    store_destroy(&group->head);
    free(group);
}

struct store *comm_local_store(struct comm_local *group)
{
    return &group->head;
}

int comm_local_join(struct comm_local *group, int rank, int size, int timeout_ms,
                    struct comm **ret_comm, struct error *err)
{
    struct comm_ring_options options = {.join_timeout_ms = timeout_ms, .timeout_ms = timeout_ms};
    return comm_ring_open(&group->head, rank, size, &options, ret_comm, err);
}
