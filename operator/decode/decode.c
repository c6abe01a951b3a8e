#include "operator/decode/decode.h"

#include "base/contract.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "base/str.h"
#include "base/yaml.h"
#include "base/yaml_place.h"
#include "operator/decode/decode_spec.h"
#include "operator/job/defaults.h"
#include "operator/job/validate.h"

#include <string.h>

/* A manifest being read. */
struct manifest_reader {
    struct manifest *manifest;
    const char *text;
    size_t bytes;
    const char *source;
    int64_t default_backoff_limit;
    size_t document;  /* 1-based */
    const char *path; /* in the document, of the object that is being read: of a List's item */
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

static bool is_among(const struct lines *lines, const char *text)
{
    for (size_t i = 0; i < lines->count; i++)
        if (strcmp(lines->items[i], text) == 0)
            return true;
    return false;
}

static void add_lines(struct lines *to, const struct lines *from)
{
    for (size_t i = 0; i < from->count; i++)
        lines_add(to, "%s", from->items[i]);
    to->dropped += from->dropped;
}

enum { UNUSED_MAX_BYTES = 400 }; /* of names; what is more is counted */

/* The field of the pods that this is the path of, the same for all replica types;
 * NULL: of the job. */
static const char *pod_field(const char *path)
{
    static const char begin[] = "].template.spec.";
    const char *found = strstr(path, begin);
    return found ? found + strlen(begin) : NULL;
}

/* Each once, joined by ", ". */
static const char *unused_names(const struct lines *unused, bool of_pods)
{
    struct lines names;
    lines_init(&names, unused->arena);
    auto_str struct str text;
    str_init(&text, UNUSED_MAX_BYTES + 64);
    size_t more = of_pods ? unused->dropped : 0;
    for (size_t i = 0; i < unused->count; i++) {
        const char *field = pod_field(unused->items[i]);
        const char *name = field ? field : unused->items[i];
        if ((field != NULL) != of_pods || is_among(&names, name))
            continue;
        lines_add(&names, "%s", name);
        if (text.length + strlen(name) < UNUSED_MAX_BYTES)
            str_printf(&text, "%s%s", text.length ? ", " : "", name);
        else
            more++;
    }
    if (names.count && more)
        str_printf(&text, " and %zu more", more);
    return arena_strdup(unused->arena, str_text(&text));
}

/* One line for all of them: they are the lesser news, and mostly the same in every template. */
static void note_unused(struct lines *notes, const struct lines *unused)
{
    const char *job = unused_names(unused, false), *pods = unused_names(unused, true);
    if (unused->count)
        lines_add(notes, "spec: " JSON_NOT_ENFORCED ": %s%s%s%s", job, *job && *pods ? "; " : "",
                  *pods ? "of the pods: " : "", pods);
}

struct job *decode_job(const struct json *object, int64_t default_backoff_limit,
                       struct arena *arena, struct lines *problems, struct lines *notes)
{
    struct job *job = arena_new(arena, struct job);
    struct lines form, rules, unknown, others, unused;
    lines_init(&form, arena);
    lines_init(&rules, arena);
    lines_init(&unknown, arena);
    lines_init(&others, arena);
    lines_init(&unused, arena);
    struct json_reader reader = {.arena = arena,
                                 .problems = &form,
                                 .notes = notes ? &others : NULL,
                                 .unused = &unused,
                                 .unknown = &unknown,
                                 .misspelt_fails = notes != NULL};
    decode_spec(&reader, object, job);
    validate_job(job, &rules, reader.notes);
    struct lines all = form;
    for (size_t i = 0; i < rules.count; i++)
        if (!is_about_same(form.items, form.count, rules.items[i]))
            lines_add(&all, "%s", rules.items[i]);
    if (all.count)
        job->invalid = lines_join(&all);
    else
        defaults_apply(job, default_backoff_limit, arena);
    add_lines(problems, &all);
    if (notes) {
        add_lines(all.count ? problems : notes, &unknown);
        add_lines(notes, &others);
        note_unused(notes, &unused);
    }
    return job;
}

static const char *text_at(const struct json *object, const char *key)
{
    const char *text = json_as_text(json_get(object, key));
    return text ? text : "";
}

/* Adds "job.yaml:12: document 2 (PyTorchJob mnist): TEXT" for each of the texts, which begin with
 * the path of a field in the object, or with none. */
static void add_texts(struct manifest_reader *reader, struct lines *to, const struct json *object,
                      const char *const *texts, size_t count)
{
    struct arena *arena = reader->manifest->arena;
    const char *kind = text_at(object, "kind");
    const char *name = text_at(json_get(object, "metadata"), "name");
    const char *paths[LINES_MAX];
    size_t lines[LINES_MAX];
    for (size_t i = 0; i < count; i++)
        paths[i] = arena_printf(arena, "%s.%s", reader->path, texts[i]);
    yaml_lines(reader->text, reader->bytes, reader->document - 1, paths, count, lines);
    for (size_t i = 0; i < count; i++)
        lines_add(to, "%s:%zu: document %zu (%.63s%s%.63s): %s", reader->source, lines[i],
                  reader->document, *kind ? kind : "no kind", *name ? " " : "", name, texts[i]);
}

static void add_placed(struct manifest_reader *reader, struct lines *to, const struct json *object,
                       const char *text)
{
    add_texts(reader, to, object, &text, 1);
}

static void add_all_placed(struct manifest_reader *reader, struct lines *to,
                           const struct json *object, const struct lines *from)
{
    add_texts(reader, to, object, from->items, from->count);
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

static void read_job(struct manifest_reader *reader, const struct json *object)
{
    struct manifest *manifest = reader->manifest;
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
    add_all_placed(reader, &manifest->problems, object, &problems);
    add_all_placed(reader, &manifest->notes, object, &notes);
    struct job **more = arena_array(manifest->arena, struct job *, manifest->job_count + 1);
    if (manifest->job_count)
        memcpy(more, manifest->jobs, manifest->job_count * sizeof *more);
    more[manifest->job_count++] = job;
    manifest->jobs = more;
}

static void read_document(struct manifest_reader *reader, const struct json *object);

static void read_list(struct manifest_reader *reader, const struct json *items)
{
    const char *path = reader->path;
    for (size_t i = 0; i < json_array_count(items); i++) {
        reader->path = arena_printf(reader->manifest->arena, "%s.items[%zu]", path, i);
        read_document(reader, json_at(items, i));
    }
    reader->path = path;
}

/* PytorchJob, pytorchjobs */
static bool is_misspelt(const char *kind)
{
    int limit = nearest_limit(kind);
    return nearest_distance(kind, API_KIND, limit) <= limit && strcmp(kind, API_KIND) != 0;
}

static void read_document(struct manifest_reader *reader, const struct json *object)
{
    struct manifest *manifest = reader->manifest;
    const char *kind = text_at(object, "kind"), *version = text_at(object, "apiVersion");
    bool ours = strncmp(version, API_GROUP "/", strlen(API_GROUP "/")) == 0;
    if (!json_is_object(object) || !*kind || !*version)
        add_placed(reader, &manifest->problems, object,
                   "kind, apiVersion: Required value: this is no object of Kubernetes");
    else if (strcmp(kind, "List") == 0)
        read_list(reader, json_get(object, "items"));
    else if (ours && is_misspelt(kind))
        add_placed(reader, &manifest->problems, object,
                   arena_printf(manifest->arena,
                                "kind: Unsupported value: \"%.63s\": it is spelt " API_KIND, kind));
    else if (strcmp(kind, API_KIND) != 0)
        add_placed(reader, &manifest->notes, object, "not a " API_KIND ", ignored");
    else if (strcmp(version, API_GROUP_VERSION) != 0)
        add_placed(reader, &manifest->problems, object,
                   arena_printf(manifest->arena,
                                "apiVersion: Unsupported value: \"%.63s\": supported values: "
                                "\"" API_GROUP_VERSION "\"",
                                version));
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
    struct manifest_reader reader = {.manifest = manifest,
                                     .text = text,
                                     .bytes = bytes,
                                     .source = source,
                                     .default_backoff_limit = default_backoff_limit,
                                     .path = ""};
    while (reader.document < json_array_count(manifest->documents)) {
        const struct json *object = json_at(manifest->documents, reader.document++);
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
    json_free(manifest->documents);
    arena_close(manifest->arena);
}
