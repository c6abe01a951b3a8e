#include "operator/decode.h"

#include "base/contract.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "operator/decode_spec.h"
#include "operator/defaults.h"
#include "operator/validate.h"

#include <jansson.h>
#include <string.h>

/* A manifest being read. */
struct manifest_reader {
    struct manifest *manifest;
    const char *source;
    int64_t default_backoff_limit;
    size_t document; /* 1-based */
};

/* Whether a problem is about the field that one of `lines` is about, or about what holds that
 * field: a value of the wrong form was read as absent, and need not be called missing as well. */
static bool is_about_same(const char *const *lines, size_t count, const char *problem)
{
    size_t length = strcspn(problem, ":");
    for (size_t i = 0; i < count; i++)
        if (strncmp(lines[i], problem, length) == 0 && strchr(":[.", lines[i][length]))
            return true;
    return false;
}

struct job *decode_job(const struct json_t *object, int64_t default_backoff_limit,
                       struct arena *arena, struct lines *problems, struct lines *notes)
{
    struct job *job = arena_new(arena, struct job);
    struct lines form, rules;
    lines_init(&form, arena);
    lines_init(&rules, arena);
    struct json_reader reader = {.arena = arena, .problems = &form, .notes = notes};
    decode_spec(&reader, object, job);
    validate_job(job, &rules, notes);
    struct lines all = form;
    for (size_t i = 0; i < rules.count; i++)
        if (!is_about_same(form.items, form.count, rules.items[i]))
            lines_add(&all, "%s", rules.items[i]);
    if (all.count)
        job->invalid = lines_join(&all);
    else
        defaults_apply(job, default_backoff_limit, arena);
    for (size_t i = 0; i < all.count; i++)
        lines_add(problems, "%s", all.items[i]);
    return job;
}

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* "job.yaml: document 2 (PyTorchJob mnist)" */
static const char *title(const struct manifest_reader *reader, const json_t *object)
{
    const char *kind = text_at(object, "kind");
    const char *name = text_at(json_object_get(object, "metadata"), "name");
    return arena_printf(reader->manifest->arena, "%s: document %zu (%.63s%s%.63s)", reader->source,
                        reader->document, *kind ? kind : "no kind", *name ? " " : "", name);
}

static void add_titled(struct lines *to, const struct lines *from, const char *title)
{
    for (size_t i = 0; i < from->count; i++)
        lines_add(to, "%s: %s", title, from->items[i]);
    to->dropped += from->dropped;
}

static bool has_job(const struct manifest *manifest, const struct job *job)
{
    for (size_t i = 0; i < manifest->job_count; i++)
        if (strcmp(manifest->jobs[i]->name, job->name) == 0 &&
            strcmp(manifest->jobs[i]->namespace_, job->namespace_) == 0)
            return true;
    return false;
}

static void read_job(struct manifest_reader *reader, const json_t *object)
{
    struct manifest *manifest = reader->manifest;
    const char *name = title(reader, object);
    struct lines problems, notes;
    lines_init(&problems, manifest->arena);
    lines_init(&notes, manifest->arena);
    struct job *job =
        decode_job(object, reader->default_backoff_limit, manifest->arena, &problems, &notes);
    if (has_job(manifest, job))
        lines_add(&problems,
                  "metadata.name: Duplicate value: \"%s\": another document of this file "
                  "has it",
                  job->name);
    add_titled(&manifest->problems, &problems, name);
    add_titled(&manifest->notes, &notes, name);
    struct job **more = arena_array(manifest->arena, struct job *, manifest->job_count + 1);
    if (manifest->job_count)
        memcpy(more, manifest->jobs, manifest->job_count * sizeof *more);
    more[manifest->job_count++] = job;
    manifest->jobs = more;
}

static void read_document(struct manifest_reader *reader, const json_t *object);

static void read_list(struct manifest_reader *reader, const json_t *items)
{
    for (size_t i = 0; i < json_array_size(items); i++)
        read_document(reader, json_array_get(items, i));
}

static void read_document(struct manifest_reader *reader, const json_t *object)
{
    struct manifest *manifest = reader->manifest;
    const char *kind = text_at(object, "kind"), *version = text_at(object, "apiVersion");
    if (!json_is_object(object) || !*kind || !*version)
        lines_add(&manifest->problems,
                  "%s: kind, apiVersion: Required value: this is no object of "
                  "Kubernetes",
                  title(reader, object));
    else if (strcmp(kind, "List") == 0)
        read_list(reader, json_object_get(object, "items"));
    else if (strcmp(kind, API_KIND) != 0)
        lines_add(&manifest->notes, "%s: not a " API_KIND ", ignored", title(reader, object));
    else if (strcmp(version, API_GROUP_VERSION) != 0)
        lines_add(&manifest->problems,
                  "%s: apiVersion: Unsupported value: \"%.63s\": supported values: "
                  "\"" API_GROUP_VERSION "\"",
                  title(reader, object), version);
    else
        read_job(reader, object);
}

int decode_manifest(const char *text, size_t bytes, const char *source,
                    int64_t default_backoff_limit, struct manifest **ret_manifest,
                    struct error *err)
{
    struct arena *arena = arena_open();
    struct manifest *manifest = arena_new(arena, struct manifest);
    manifest->arena = arena;
    lines_init(&manifest->problems, arena);
    lines_init(&manifest->notes, arena);
    *ret_manifest = manifest;
    if (yaml_parse(text, bytes, source, &manifest->documents, err)) {
        lines_add(&manifest->problems, "%s", err->msg);
        return -1;
    }
    struct manifest_reader reader = {
        .manifest = manifest, .source = source, .default_backoff_limit = default_backoff_limit};
    while (reader.document < json_array_size(manifest->documents)) {
        const json_t *object = json_array_get(manifest->documents, reader.document++);
        read_document(&reader, object);
    }
    if (manifest->job_count == 0 && manifest->problems.count == 0)
        lines_add(&manifest->problems, "%s: no " API_KIND " (" API_GROUP_VERSION ") in it%s%s",
                  source, manifest->notes.count ? "; " : "", lines_join(&manifest->notes));
    if (manifest->problems.count == 0)
        return 0;
    return error_set(err, ERR_INPUT, "%s", manifest->problems.items[0]);
}

void decode_close(struct manifest *manifest)
{
    if (!manifest)
        return;
    json_decref(manifest->documents);
    arena_close(manifest->arena);
}
