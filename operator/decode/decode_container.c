#include "operator/decode/decode_container.h"

#include "base/contract.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/decode/decode_identity.h"

#include <string.h>

#define MAX_RESTARTS   1000000 /* of one container, so that no sum overflows */
#define MAX_CONTAINERS 1000

static const struct json_field end_fields[] = {
    JSON_OPTIONAL("exitCode", struct container_end, exit_code, INT32_MIN, INT32_MAX),
    JSON_TEXT("reason", struct container_end, reason),
    JSON_TEXT("message", struct container_end, message),
    JSON_CUSTOM("finishedAt", struct container_end, finished_ms, decode_time),
    JSON_END,
};

static const struct json_field wait_fields[] = {
    JSON_TEXT("reason", struct container_wait, reason),
    JSON_TEXT("message", struct container_wait, message),
    JSON_END,
};

static const struct json_field running_fields[] = {
    JSON_CUSTOM("startedAt", struct container_status, started_ms, decode_time),
    JSON_END,
};

static const struct json_field state_fields[] = {
    JSON_SAME("running", running_fields),
    JSON_PART("waiting", struct container_status, wait, wait_fields),
    JSON_OPTIONAL_PART("terminated", struct container_status, end, end.present, end_fields),
    JSON_END,
};

static const struct json_field last_state_fields[] = {
    JSON_OPTIONAL_PART("terminated", struct container_status, before, before.present, end_fields),
    JSON_END,
};

const struct json_field container_status_fields[] = {
    JSON_TEXT("name", struct container_status, name),
    JSON_OPTIONAL("restartCount", struct container_status, restarts, 0, MAX_RESTARTS),
    JSON_SAME("state", state_fields),
    JSON_SAME("lastState", last_state_fields),
    JSON_END,
};

void container_mark_own(struct container_statuses *statuses, const char *names)
{
    for (size_t i = 0; i < statuses->count; i++)
        statuses->items[i].own =
            statuses->items[i].name && str_is_listed(names, statuses->items[i].name);
}

bool container_any_ended(const struct container_statuses *statuses)
{
    for (size_t i = 0; i < statuses->count; i++)
        if (statuses->items[i].end.present && !statuses->items[i].own)
            return true;
    return false;
}

bool container_all_done(const struct container_statuses *statuses)
{
    for (size_t i = 0; i < statuses->count; i++)
        if (!statuses->items[i].end.present || statuses->items[i].end.exit_code.value != 0)
            return false;
    return statuses->count > 0;
}

bool container_own_failed(const struct container_statuses *statuses)
{
    for (size_t i = 0; i < statuses->count; i++)
        if (statuses->items[i].own && statuses->items[i].end.present &&
            statuses->items[i].end.exit_code.value != 0)
            return true;
    return false;
}

/* Whether the container ended and starts again, which restartCount shows only when it has: up to
 * five minutes later. The kubelet says CrashLoopBackOff of none whose last end restartCount holds
 * already. After an exit with 0 it alone knows whether there is a restart, so that one is left
 * until it says so. */
static bool is_restart_due(const struct container_status *status, int64_t deleted_ms)
{
    const char *wait = status->wait.reason ? status->wait.reason : "";
    const struct container_end *end = &status->end;
    if (!end->present && strcmp(wait, "CrashLoopBackOff") == 0)
        end = &status->before;
    else if (end->exit_code.value == 0)
        return false;
    bool by_itself = !deleted_ms || (end->finished_ms && end->finished_ms < deleted_ms);
    return end->present && by_itself;
}

int32_t container_restarts(const struct container_statuses *statuses)
{
    int32_t sum = 0;
    for (size_t i = 0; i < statuses->count && i < MAX_CONTAINERS; i++)
        sum += statuses->items[i].own ? 0 : (int32_t)statuses->items[i].restarts.value;
    return sum;
}

int32_t container_restarts_due(const struct container_statuses *statuses, int64_t deleted_ms)
{
    int32_t sum = 0;
    for (size_t i = 0; i < statuses->count && i < MAX_CONTAINERS; i++)
        sum += !statuses->items[i].own && is_restart_due(&statuses->items[i], deleted_ms);
    return sum;
}

/* The end that its restarts or its pod's failure count last; NULL: none. */
static const struct container_end *counted_end(const struct container_status *status, bool failed,
                                               int64_t deleted_ms)
{
    bool fatal = failed && status->end.exit_code.value != 0;
    if (status->own)
        return NULL;
    if (status->end.present && (fatal || is_restart_due(status, deleted_ms)))
        return &status->end;
    return status->before.present ? &status->before : NULL;
}

/* Reasons that say no more than the exit code does. */
static bool is_plain(const char *reason)
{
    return !*reason || strcmp(reason, "Error") == 0 || strcmp(reason, "Completed") == 0;
}

/* Why an agent says that it is not worth trying again on this node; NULL: it does not say so. */
static const char *hardware_message(const struct container_end *end, bool main)
{
    const char *message = end->message ? end->message : "";
    bool says_so = main && end->exit_code.value == EXIT_HARDWARE &&
                   strncmp(message, HARDWARE_MESSAGE, strlen(HARDWARE_MESSAGE)) == 0;
    return says_so ? message : NULL;
}

void container_last_end(const struct container_statuses *statuses, bool failed, int64_t deleted_ms,
                        struct pod_end *ret_end, int64_t *ret_ms)
{
    for (size_t i = 0; i < statuses->count; i++) {
        const struct container_status *status = &statuses->items[i];
        const struct container_end *end = counted_end(status, failed, deleted_ms);
        bool main = status->name && strcmp(status->name, API_CONTAINER_NAME) == 0;
        /* Times have whole seconds, so several ends may tie: then the main container speaks. */
        if (!end || !status->name || (ret_end->container && end->finished_ms < *ret_ms) ||
            (ret_end->container && end->finished_ms == *ret_ms && !main))
            continue;
        *ret_ms = end->finished_ms;
        *ret_end = (struct pod_end){
            .container = status->name,
            .code = (int32_t)end->exit_code.value,
            .reason = end->reason && !is_plain(end->reason) ? end->reason : NULL,
            .hardware = hardware_message(end, main),
        };
    }
}

static const char *last_line(const char *message, struct arena *arena)
{
    size_t end = message ? strlen(message) : 0;
    while (end > 0 && message[end - 1] == '\n')
        end--;
    size_t begin = end;
    while (begin > 0 && message[begin - 1] != '\n')
        begin--;
    return end > begin ? arena_strndup(arena, message + begin, end - begin) : NULL;
}

const char *container_last_line(const struct container_statuses *statuses, struct arena *arena)
{
    for (size_t i = 0; i < statuses->count; i++) {
        const struct container_status *status = &statuses->items[i];
        const struct container_end *end = status->end.present ? &status->end : &status->before;
        if (status->name && strcmp(status->name, API_CONTAINER_NAME) == 0)
            return last_line(end->message, arena);
    }
    return NULL;
}

int64_t container_started_ms(const struct container_statuses *statuses)
{
    for (size_t i = 0; i < statuses->count; i++)
        if (statuses->items[i].name && strcmp(statuses->items[i].name, API_CONTAINER_NAME) == 0)
            return statuses->items[i].started_ms;
    return 0;
}
