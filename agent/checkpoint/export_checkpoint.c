#include "agent/checkpoint/export_checkpoint.h"

#include "agent/checkpoint/checkpoint.h"
#include "agent/checkpoint/export_texts.h"
#include "agent/models/config_json.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/yaml.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The source, and the tensors first .. end - 1 of it, which are read together: a file's. */
struct export_source {
    struct arena *arena;
    struct checkpoint *checkpoint;
    struct architecture architecture;
    struct param **params;
    struct export_tensor *tensors;
    int count;
    const char *tokenizer; /* "": none is known */
    enum dtype dtype;      /* of what is written */
    int64_t most_bytes;    /* of what is read together; 0: all */
    bool allow_nonfinite;
    int first, end;
    struct tensor_range *ranges; /* [count] */
    float *values;               /* of all that is read */
};

/* ---- the checkpoint ---- */

static int find_checkpoint(struct arena *arena, const char *path, const char **ret_path,
                           struct error *err)
{
    const char *manifest = arena_printf(arena, "%s/COMPLETE", path);
    struct checkpoint_found found;
    struct stat st;
    *ret_path = path;
    if (stat(manifest, &st) == 0)
        return 0;
    if (checkpoint_find_latest(path, NULL, NULL, NULL, &found, err) < 0)
        return -1;
    *ret_path = arena_strdup(arena, found.path);
    free(found.path);
    return 0;
}

static int read_config(struct export_source *s, const char *path, struct error *err)
{
    auto_free char *text = NULL;
    size_t bytes;
    if (file_read(path, CONFIG_JSON_MAX_BYTES, &text, &bytes, err) < 0)
        return error_wrap(err, "the model's config.json");
    return config_json_read(s->arena, path, text, bytes, &s->architecture, NULL, err);
}

static void list_tensors(struct export_source *s)
{
    struct model *model = architecture_build(s->arena, &s->architecture);
    s->params = module_list_params(s->arena, model->root, &s->count);
    s->tensors = export_tensors_of(s->arena, s->params, s->count);
    s->ranges = arena_array(s->arena, struct tensor_range, s->count);
}

/* Reads the tensors that lie with tensor i in a file, by the rule that cuts the export's files. */
static int read_around(struct export_source *s, int i, struct error *err)
{
    int64_t bytes = 0, count = 0;
    s->first = s->end = 0;
    for (; s->end < s->count; s->end++) {
        int64_t size = s->params[s->end]->count * (int64_t)sizeof(float);
        if (s->most_bytes && bytes > 0 && bytes + size > s->most_bytes) {
            if (s->end > i)
                break;
            s->first = s->end;
            bytes = 0;
        }
        bytes += size;
    }
    s->values = xrealloc(s->values, (size_t)bytes);
    for (int k = s->first; k < s->end; k++) {
        const struct param *p = s->params[k];
        struct tensor_range *range = &s->ranges[k];
        *range = (struct tensor_range){.name = p->name,
                                       .dims = p->dims,
                                       .count = p->count,
                                       .dtype = DTYPE_F32,
                                       .data = s->values + count};
        memcpy(range->shape, p->shape, (size_t)p->dims * sizeof p->shape[0]);
        count += p->count;
    }
    const struct tensor_ranges ranges = {s->ranges + s->first, s->end - s->first};
    return checkpoint_load(s->checkpoint, CHECKPOINT_MODEL, &ranges, s->allow_nonfinite, err);
}

/* The writer asks tensor by tensor, in its file's order. Reading each alone would open and verify
 * all files of the checkpoint once a tensor. */
static int gather(void *ctx, int i, float *values, struct error *err)
{
    struct export_source *s = ctx;
    if ((i < s->first || i >= s->end) && read_around(s, i, err) < 0) {
        s->first = s->end = 0;
        return -1;
    }
    memcpy(values, s->ranges[i].data, (size_t)s->params[i]->count * sizeof *values);
    return 0;
}

/* Where the run that wrote the checkpoint had its tokenizer, as agent_config.yaml says; "": it
 * does not, or what it names is not there. What is below some current directory (runs before paths
 * were kept whole) is not known: another tokenizer may be there now. */
static const char *find_tokenizer(struct arena *arena, const char *checkpoint)
{
    static const char *const keys[][2] = {{"data", "tokenizer"}, {"model", "name_or_path"}};
    const char *path = arena_printf(arena, "%s/agent_config.yaml", checkpoint), *found = "";
    auto_free char *text = NULL;
    size_t bytes;
    struct json *documents = NULL;
    struct error ignored; /* checkpoints of others have none */
    struct stat st;
    if (file_read(path, YAML_MAX_BYTES, &text, &bytes, &ignored) < 0 ||
        yaml_parse(text, bytes, path, &documents, &ignored) < 0)
        return "";
    const struct json *root = json_at(documents, 0);
    for (size_t i = 0; i < array_length(keys) && !found[0]; i++) {
        const char *value = json_as_text(json_get(json_get(root, keys[i][0]), keys[i][1]));
        if (value && value[0] == '/' && stat(value, &st) == 0)
            found = arena_strdup(arena, value);
    }
    json_free(documents);
    return found;
}

static int open_source(const struct export_request *r, struct export_source *s, struct error *err)
{
    const char *path;
    struct stat st;
    if (r->tokenizer[0] && stat(r->tokenizer, &st) < 0)
        return error_errno(err, errno, "tokenizer %s", r->tokenizer);
    if (find_checkpoint(s->arena, r->checkpoint, &path, err) < 0)
        return -1;
    const char *config = r->config[0] ? r->config : arena_printf(s->arena, "%s/config.json", path);
    if (read_config(s, config, err) < 0 || checkpoint_open(path, &s->checkpoint, err) < 0)
        return -1;
    s->tokenizer = r->tokenizer[0] ? r->tokenizer : find_tokenizer(s->arena, path);
    s->dtype = r->dtype;
    s->allow_nonfinite = r->allow_nonfinite;
    if (r->as_saved && checkpoint_read_dtype(s->checkpoint, CHECKPOINT_MODEL, &s->dtype, err) < 0)
        return -1;
    /* Read as fp32 and cut as what is written: the files' limit in their dtype, counted in
     * floats. */
    s->most_bytes = r->max_file_bytes * (int64_t)(sizeof(float) / dtype_bytes(s->dtype));
    list_tensors(s);
    return 0;
}

/* ---- the directory ---- */

static int export_source(const struct export_request *r, struct export_source *s, struct comm *comm,
                         struct stream *stream, bool *ret_tokenizer, struct error *err)
{
    struct export_texts texts = {0};
    export_texts_add_model(&texts, s->arena, &s->architecture, s->dtype);
    int before = texts.count;
    if (export_texts_add_tokenizer(&texts, s->arena, s->tokenizer, err) < 0)
        return -1;
    *ret_tokenizer = texts.count > before;
    const struct export_directory what = {.model = {.files = &file_ops_system,
                                                    .path = r->directory,
                                                    .tensors = s->tensors,
                                                    .count = s->count,
                                                    .gather = gather,
                                                    .ctx = s,
                                                    .comm = comm,
                                                    .stream = stream,
                                                    .dtype = s->dtype,
                                                    .allow_nonfinite = s->allow_nonfinite},
                                          .texts = texts.items,
                                          .text_count = texts.count,
                                          .max_file_bytes = r->max_file_bytes};
    return export_directory(&what, err);
}

int export_checkpoint(const struct export_request *request, bool *ret_tokenizer, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    struct export_source source = {.arena = arena};
    struct device *device = NULL;
    struct stream *stream = NULL;
    struct comm *comm = NULL;
    int result = open_source(request, &source, err);
    if (result == 0 &&
        (device_open("cpu", 1, &device, err) < 0 ||
         stream_open(device, "export", &stream, err) < 0 || comm_self_open(&comm, err) < 0))
        result = -1;
    if (result == 0)
        result = export_source(request, &source, comm, stream, ret_tokenizer, err);
    stream_close(stream);
    comm_close(comm);
    device_close(device);
    checkpoint_close(source.checkpoint);
    free(source.values);
    return result;
}
