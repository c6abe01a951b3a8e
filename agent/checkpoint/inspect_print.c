#include "agent/checkpoint/inspect.h"

#include "agent/checkpoint/checkpoint.h"

#include "base/json_text.h"

#include <inttypes.h>

static const char *kind_name(enum inspect_kind kind)
{
    static const char *const names[] = {
        [INSPECT_CHECKPOINT] = "checkpoint",
        [INSPECT_DIRECTORY] = "directory of checkpoints",
        [INSPECT_PRETRAINED] = "Hugging Face model",
        [INSPECT_FILE] = "safetensors file",
    };
    return names[kind];
}

static int64_t tensor_bytes(const struct inspect_tensor *t)
{
    return t->count * safetensors_dtype_bytes(t->dtype);
}

/* ---- for people ---- */

static void add_state(const struct inspection *in, struct str *out)
{
    const struct checkpoint_state *s = &in->state;
    str_printf(out,
               "step %" PRId64 ", %" PRId64 " epochs and %" PRId64 " samples, saved by %" PRId64
               " ranks with %s, learning rate %.6g, seed %" PRIu64 "\n",
               s->step, s->epoch, s->epoch_samples, s->world_size, s->strategy, s->learning_rate,
               s->seed);
}

static void add_tensor(const struct inspect_tensor *t, struct str *out)
{
    str_printf(out, "  %s%s%s  %s [", t->part, t->part[0] ? "/" : "", t->name,
               safetensors_dtype_name(t->dtype));
    for (int d = 0; d < t->dims; d++)
        str_printf(out, "%s%" PRId64, d ? ", " : "", t->shape[d]);
    str_printf(out, "]  %" PRId64 " bytes", tensor_bytes(t));
    if (t->pieces > 1)
        str_printf(out, " in %d pieces", t->pieces);
    str_add(out, "\n");
}

/* The tensors of each part: how many, how large, of which dtype. */
static void add_sums(const struct inspection *in, struct str *out)
{
    for (int first = 0, end; first < in->tensor_count; first = end) {
        int64_t elements = 0, bytes = 0;
        const char *part = in->tensors[first].part;
        bool mixed = false;
        for (end = first; end < in->tensor_count && in->tensors[end].part == part; end++) {
            elements += in->tensors[end].count;
            bytes += tensor_bytes(&in->tensors[end]);
            mixed = mixed || in->tensors[end].dtype != in->tensors[first].dtype;
        }
        str_printf(out, "%s%s%d tensors, %" PRId64 " elements, %" PRId64 " bytes of %s\n", part,
                   part[0] ? ": " : "", end - first, elements, bytes,
                   mixed ? "several dtypes" : safetensors_dtype_name(in->tensors[first].dtype));
    }
}

static void add_verdict(const struct inspection *in, struct str *out)
{
    for (size_t i = 0; i < in->passed_over.count; i++)
        str_printf(out, "passed over: %s\n", in->passed_over.items[i]);
    for (size_t i = 0; i < in->problems.count; i++)
        str_printf(out, "PROBLEM: %s\n", in->problems.items[i]);
    if (in->problems.count > 0)
        return;
    if (in->kind == INSPECT_CHECKPOINT || in->kind == INSPECT_DIRECTORY)
        str_printf(out, "complete, %s\n",
                   in->verified ? "and undamaged: all checksums fit" : "checksums not looked at");
    else
        str_add(out, "complete; files of this kind have no checksums\n");
}

void inspect_print(const struct inspection *in, const char *path, bool all_tensors, struct str *out)
{
    str_printf(out, "%s: %s\n", path, kind_name(in->kind));
    if (in->has_state)
        add_state(in, out);
    for (int i = 0; i < in->found_count; i++)
        str_printf(out, "  step %" PRId64 "  %s%s\n", in->found[i].step, in->found[i].path,
                   i == 0 ? "  (the newest)" : "");
    for (int i = 0; i < in->file_count; i++)
        if (in->files[i].path[0])
            str_printf(out, "  %s  %" PRId64 " bytes\n", in->files[i].path, in->files[i].bytes);
    for (int i = 0; all_tensors && i < in->tensor_count; i++)
        add_tensor(&in->tensors[i], out);
    add_sums(in, out);
    add_verdict(in, out);
}

/* ---- JSON ---- */

static void begin_item(int i, const char *key, const char *text, struct str *out)
{
    str_printf(out, "%s{\"%s\":", i ? "," : "", key);
    json_text(text, out);
}

static void add_state_json(const struct checkpoint_state *s, struct str *out)
{
    str_printf(out,
               ",\"step\":%" PRId64 ",\"epoch\":%" PRId64 ",\"epoch_samples\":%" PRId64
               ",\"world_size\":%" PRId64 ",\"seed\":%" PRIu64 ",\"learning_rate\":",
               s->step, s->epoch, s->epoch_samples, s->world_size, s->seed);
    json_number(s->learning_rate, out);
    str_add(out, ",\"strategy\":");
    json_text(s->strategy, out);
}

static void add_tensor_json(int i, const struct inspect_tensor *t, struct str *out)
{
    begin_item(i, "name", t->name, out);
    str_printf(out, ",\"part\":\"%s\",\"dtype\":\"%s\",\"shape\":[", t->part,
               safetensors_dtype_name(t->dtype));
    for (int d = 0; d < t->dims; d++)
        str_printf(out, "%s%" PRId64, d ? "," : "", t->shape[d]);
    str_printf(out, "],\"bytes\":%" PRId64 ",\"pieces\":%d}", tensor_bytes(t), t->pieces);
}

static void add_lines_json(const char *key, const struct lines *lines, struct str *out)
{
    str_printf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < lines->count; i++) {
        str_add(out, i ? "," : "");
        json_text(lines->items[i], out);
    }
    str_add(out, "]");
}

void inspect_json(const struct inspection *in, const char *path, struct str *out)
{
    begin_item(0, "path", path, out);
    str_printf(out, ",\"kind\":\"%s\",\"complete\":%s,\"verified\":%s", kind_name(in->kind),
               in->problems.count == 0 ? "true" : "false", in->verified ? "true" : "false");
    if (in->has_state)
        add_state_json(&in->state, out);
    str_add(out, ",\"checkpoints\":[");
    for (int i = 0; i < in->found_count; i++) {
        begin_item(i, "path", in->found[i].path, out);
        str_printf(out, ",\"step\":%" PRId64 "}", in->found[i].step);
    }
    str_add(out, "],\"files\":[");
    for (int i = 0; i < in->file_count; i++) {
        begin_item(i, "path", in->files[i].path, out);
        str_printf(out, ",\"bytes\":%" PRId64 "}", in->files[i].bytes);
    }
    str_add(out, "],\"tensors\":[");
    for (int i = 0; i < in->tensor_count; i++)
        add_tensor_json(i, &in->tensors[i], out);
    str_add(out, "]");
    add_lines_json("problems", &in->problems, out);
    add_lines_json("passed_over", &in->passed_over, out);
    str_add(out, "}\n");
}
