#include "agent/checkpoint/checkpoint_manifest.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#define FIRST_LINE "shoal-checkpoint 1"

void manifest_print(const struct manifest *manifest, struct str *out)
{
    str_printf(out, FIRST_LINE "\nstep %" PRId64 "\n", manifest->step);
    for (int i = 0; i < manifest->file_count; i++) {
        const struct manifest_file *f = &manifest->files[i];
        str_printf(out, "file %s %" PRId64 " %016" PRIx64 " %016" PRIx64 "\n", f->path, f->bytes,
                   f->xxh64, f->head_xxh64);
    }
    /* The last line checks all before it: a manifest that was cut off or edited is not taken for a
     * complete one. */
    str_printf(out, "end %016" PRIx64 "\n", (uint64_t)XXH64(str_text(out), out->length, 0));
}

/* A path that cannot lead out of the checkpoint's directory. */
static bool path_is_inside(const char *path)
{
    return path[0] != '/' && !strstr(path, "..");
}

static bool parse_file(struct arena *arena, const char *line, struct manifest_file *f)
{
    char path[MANIFEST_MAX_PATH_BYTES + 1];
    int end = 0;
    int fields = sscanf(line, "file %128s %" SCNd64 " %16" SCNx64 " %16" SCNx64 "%n", path,
                        &f->bytes, &f->xxh64, &f->head_xxh64, &end);
    if (fields != 4 || line[end] != '\0' || f->bytes < 0 || !path_is_inside(path))
        return false;
    f->path = arena_strdup(arena, path);
    return true;
}

/* The text without its last line, if that line has the text's checksum; else 0. */
static size_t checked_bytes(const char *text, size_t bytes)
{
    const char *last = bytes > 0 ? memrchr(text, '\n', bytes - 1) : NULL;
    if (!last)
        return 0;
    size_t body = (size_t)(last + 1 - text);
    char expected[32];
    int length =
        snprintf(expected, sizeof expected, "end %016" PRIx64 "\n", (uint64_t)XXH64(text, body, 0));
    return bytes - body == (size_t)length && memcmp(text + body, expected, (size_t)length) == 0
               ? body
               : 0;
}

/* Whether it is what a save writes, to the byte: nothing before, between or behind. */
static bool is_printed_so(const struct manifest *m, const char *text, size_t bytes)
{
    auto_str struct str again;
    str_init(&again, bytes + 1);
    manifest_print(m, &again);
    return again.length == bytes && memcmp(str_text(&again), text, bytes) == 0;
}

int manifest_parse(struct arena *arena, const char *name, const char *text, size_t bytes,
                   struct manifest *ret_manifest, struct error *err)
{
    size_t body = checked_bytes(text, bytes);
    if (body == 0)
        return error_set(err, ERR_INPUT, "%s: damaged: its checksum does not fit its text", name);
    char *copy = arena_strndup(arena, text, body), *rest = copy;
    int lines = 0;
    for (size_t i = 0; i < body; i++)
        lines += text[i] == '\n';
    struct manifest m = {.files = arena_array(arena, struct manifest_file, lines)};
    int end = 0;
    const char *first = strsep(&rest, "\n"), *step = rest ? strsep(&rest, "\n") : NULL;
    bool good = step && strcmp(first, FIRST_LINE) == 0 &&
                sscanf(step, "step %" SCNd64 "%n", &m.step, &end) == 1 && step[end] == '\0';
    while (good && rest && *rest)
        good = parse_file(arena, strsep(&rest, "\n"), &m.files[m.file_count++]);
    if (!good || !is_printed_so(&m, text, bytes))
        return error_set(err, ERR_INPUT, "%s: not a manifest that this version understands", name);
    *ret_manifest = m;
    return 0;
}
