#include "cli/job_json.h"

#include "base/json.h"
#include "operator/manifest/manifest.h"

/* As in the job's status. */
static struct json *training_of(const struct job_facts *job)
{
    const struct job_status status = {.training = job->training, .goodput = job->goodput};
    return manifest_training(&status);
}

static struct json *job_of(const struct job_facts *job)
{
    const struct condition *last = job_facts_condition(job);
    return json_object_of(
        "namespace", json_new_text(job->namespace_), "name", json_new_text(job->name), "state",
        json_new_text(job->state), "reason", last ? json_new_text(last->reason) : NULL, "message",
        last ? json_new_text(last->message) : NULL, "stateTime",
        last ? json_new_time(last->transition_ms) : NULL, "creationTime",
        json_new_time(job->created_ms), "startTime", json_new_time(job->start_ms), "completionTime",
        json_new_time(job->completion_ms), "replicas",
        json_new_integer(job->replicas[REPLICA_MASTER] + job->replicas[REPLICA_WORKER]), "active",
        json_new_integer(job->active), "gpus", json_new_integer(job->gpus), "restarts",
        json_new_integer(job->restarts), "failures", json_new_integer(job->failures),
        "backoffLimit", job->limit >= 0 ? json_new_integer(job->limit) : NULL, "training",
        training_of(job), NULL);
}

static char *print_and_free(struct json *value)
{
    char *text = json_print(value, JSON_INDENTED);
    json_free(value);
    return text;
}

char *job_json_list(const struct job_facts *const *jobs, size_t count)
{
    struct json *array = json_new_array();
    for (size_t i = 0; i < count; i++)
        json_append(array, job_of(jobs[i]));
    return print_and_free(json_object_of("jobs", array, NULL));
}

static struct json *pod_of(const struct pod_facts *pod)
{
    return json_object_of("name", json_new_text(pod->name), "state", json_new_text(pod->state),
                          "node", *pod->node ? json_new_text(pod->node) : NULL, "restarts",
                          json_new_integer(pod->restarts), "creationTime",
                          json_new_time(pod->created_ms), "reason",
                          *pod->reason ? json_new_text(pod->reason) : NULL, "message",
                          *pod->message ? json_new_text(pod->message) : NULL, "log",
                          pod->log ? json_new_text(pod->log) : NULL, NULL);
}

static struct json *event_of(const struct event_facts *event)
{
    return json_object_of("time", json_new_time(event->time_ms), "type", json_new_text(event->type),
                          "reason", json_new_text(event->reason), "message",
                          json_new_text(event->message), "count", json_new_integer(event->count),
                          NULL);
}

char *job_json_story(const struct story *story)
{
    struct json *pods = json_new_array(), *events = json_new_array();
    for (size_t i = 0; i < story->pod_count; i++)
        json_append(pods, pod_of(&story->pods[i]));
    for (size_t i = 0; i < story->event_count; i++)
        json_append(events, event_of(&story->events[i]));
    return print_and_free(json_object_of("job", job_of(story->job), "replicas", pods, "events",
                                         events, "page",
                                         story->page ? json_new_text(story->page) : NULL, NULL));
}
