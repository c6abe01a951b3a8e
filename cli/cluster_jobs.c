#include "cli/cluster_jobs.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/contract.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "operator/job/resources.h"
#include "operator/kube/kube.h"

enum {
    PATH_MAX_BYTES = 64 * 1024, /* with a selector and the token of a list's next page */
    NAMES_MAX_BYTES = 1 << 20,
    LIST_STARTS_MAX = 3, /* of one that expires meanwhile */
    ITEMS_MAX = 1000000,
    PAGES_MAX = 2000, /* as many as hold them */
};
#define PAGE_ITEMS "500"

static int add_path(struct str *path, const struct resource *resource, const char *namespace_,
                    const char *name, struct error *err)
{
    char text[2048];
    if (!kube_path(text, sizeof text, resource->group, resource->version, resource->plural,
                   namespace_, name, NULL))
        return error_set(err, ERR_CONFIG, "%.80s: too long a name", name ? name : namespace_);
    str_add(path, text);
    return 0;
}

/* ---- lists, page by page ---- */

/* Takes each item of a list. */
struct taker {
    void (*add)(struct taker *taker, const struct json *item);
    struct arena *arena;
    void *items;
    size_t count, room;
};

/* Room for one item more of so many bytes. */
static void *add_item(struct taker *taker, size_t bytes)
{
    if (taker->count == taker->room) {
        size_t room = taker->room ? 2 * taker->room : 64;
        void *items = arena_alloc(taker->arena, room * bytes);
        if (taker->count)
            memcpy(items, taker->items, taker->count * bytes);
        taker->items = items;
        taker->room = room;
    }
    return (char *)taker->items + taker->count++ * bytes;
}

/* One page; *ret_next: the token of the next, "" after the last. */
static int read_page(struct cluster *cluster, const char *path, struct taker *taker,
                     char **ret_next, struct error *err)
{
    struct json *list, *item;
    if (cluster_get(cluster, path, &list, err) < 0)
        return -1;
    json_each_item(item, json_get(list, "items")) {
        if (taker->count < ITEMS_MAX)
            taker->add(taker, item);
    }
    const char *next = json_as_text(json_get(json_get(list, "metadata"), "continue"));
    *ret_next = xstrdup(next ? next : "");
    json_free(list);
    return 0;
}

static int read_pages(struct cluster *cluster, const char *path, struct taker *taker,
                      struct error *err)
{
    auto_free char *next = xstrdup("");
    taker->count = 0;
    for (int pages = 0; pages < PAGES_MAX; pages++) {
        auto_str struct str page;
        str_init(&page, PATH_MAX_BYTES);
        str_add(&page, path);
        cluster_add_query(&page, "limit", PAGE_ITEMS);
        if (*next)
            cluster_add_query(&page, "continue", next);
        char *following;
        if (read_page(cluster, str_text(&page), taker, &following, err) < 0)
            return -1;
        free(next);
        next = following;
        if (!*next)
            return 0;
    }
    return error_set(err, ERR_LIMIT,
                     "the list %.200s has no end: the server names a next page after %d of them",
                     path, PAGES_MAX);
}

/* A list that takes longer than the server remembers its beginning is begun anew. */
static int read_list(struct cluster *cluster, const char *path, struct taker *taker,
                     struct error *err)
{
    int result = -1;
    for (int i = 0; i < LIST_STARTS_MAX; i++) {
        result = read_pages(cluster, path, taker, err);
        if (result == 0 || err->code != ERR_GONE)
            break;
    }
    return result;
}

/* ---- jobs ---- */

static void take_job(struct taker *taker, const struct json *item)
{
    struct job_facts *job = add_item(taker, sizeof *job);
    *job = job_facts_read(item, clock_now_ms(), taker->arena);
}

int cluster_jobs(struct cluster *cluster, const char *namespace_, const char *selector,
                 struct arena *arena, struct job_list *ret_jobs, struct error *err)
{
    struct taker taker = {.add = take_job, .arena = arena};
    auto_str struct str path;
    str_init(&path, PATH_MAX_BYTES);
    if (add_path(&path, &resource_job, namespace_, NULL, err) < 0)
        return -1;
    if (selector)
        cluster_add_query(&path, "labelSelector", selector);
    if (read_list(cluster, str_text(&path), &taker, err) < 0)
        return -1;
    *ret_jobs = (struct job_list){taker.items, taker.count};
    return 0;
}

/* There is none of that name: is it misspelt, or is there no such kind? */
static int explain_missing(struct cluster *cluster, const char *name, struct arena *arena,
                           struct error *err)
{
    const char *namespace_ = cluster_namespace(cluster);
    struct job_list jobs;
    if (cluster_jobs(cluster, namespace_, NULL, arena, &jobs, err) < 0)
        return -1;
    auto_str struct str names;
    str_init(&names, NAMES_MAX_BYTES);
    for (size_t i = 0; i < jobs.count; i++)
        str_printf(&names, " %s", jobs.items[i].name);
    struct nearest_note note = nearest_note(name, str_text(&names), " ");
    return error_set(err, ERR_INPUT,
                     "no PyTorchJob %.80s%s in namespace %.80s, which has %zu; `shoal top` lists "
                     "all, -n names another namespace",
                     name, note.text, namespace_, jobs.count);
}

int cluster_job(struct cluster *cluster, const char *name, struct arena *arena,
                struct job_facts *ret_job, struct error *err)
{
    struct json *object;
    auto_str struct str path;
    str_init(&path, PATH_MAX_BYTES);
    if (add_path(&path, &resource_job, cluster_namespace(cluster), name, err) < 0)
        return -1;
    if (cluster_get(cluster, str_text(&path), &object, err) < 0)
        return err->code == ERR_NOT_FOUND ? explain_missing(cluster, name, arena, err) : -1;
    *ret_job = job_facts_read(object, clock_now_ms(), arena);
    json_free(object);
    return 0;
}

/* ---- what belongs to a job ---- */

static void take_pod(struct taker *taker, const struct json *item)
{
    struct pod_facts *pod = add_item(taker, sizeof *pod);
    if (!job_facts_read_pod(item, taker->arena, pod))
        taker->count--;
}

int cluster_pods(struct cluster *cluster, const struct job_facts *job, struct arena *arena,
                 struct pod_list *ret_pods, struct error *err)
{
    struct taker taker = {.add = take_pod, .arena = arena};
    auto_str struct str path;
    str_init(&path, PATH_MAX_BYTES);
    if (add_path(&path, &resource_pod, job->namespace_, NULL, err) < 0)
        return -1;
    auto_free char *selector = xasprintf("%s=%s", LABEL_JOB_NAME, job->name);
    cluster_add_query(&path, "labelSelector", selector);
    if (read_list(cluster, str_text(&path), &taker, err) < 0)
        return -1;
    if (taker.count)
        qsort(taker.items, taker.count, sizeof(struct pod_facts), job_facts_compare_pods);
    *ret_pods = (struct pod_list){taker.items, taker.count};
    return 0;
}

static void take_event(struct taker *taker, const struct json *item)
{
    struct event_facts *event = add_item(taker, sizeof *event);
    *event = job_facts_read_event(item, taker->arena);
    event->order = taker->count;
}

static int compare_events(const void *a, const void *b)
{
    const struct event_facts *x = a, *y = b;
    if (x->time_ms != y->time_ms)
        return x->time_ms > y->time_ms ? 1 : -1;
    return (x->order > y->order) - (x->order < y->order);
}

int cluster_events(struct cluster *cluster, const struct job_facts *job, struct arena *arena,
                   struct event_list *ret_events, struct error *err)
{
    struct taker taker = {.add = take_event, .arena = arena};
    auto_str struct str path;
    str_init(&path, PATH_MAX_BYTES);
    if (add_path(&path, &resource_event, job->namespace_, NULL, err) < 0)
        return -1;
    auto_free char *selector =
        xasprintf("involvedObject.kind=%s,involvedObject.name=%s,involvedObject.uid=%s", API_KIND,
                  job->name, job->uid);
    cluster_add_query(&path, "fieldSelector", selector);
    if (read_list(cluster, str_text(&path), &taker, err) < 0)
        return -1;
    if (taker.count)
        qsort(taker.items, taker.count, sizeof(struct event_facts), compare_events);
    *ret_events = (struct event_list){taker.items, taker.count};
    return 0;
}
