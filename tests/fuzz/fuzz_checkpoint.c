/* Small files of checkpoints and of Hugging Face directories; the first byte chooses. Whatever the
 * bytes, there is a message, or what was read can be written again. COMPLETE gets the checksum that
 * its reader wants, so that what is behind it is reached. */
#include "tests/fuzz/fuzz.h"

#include "agent/checkpoint/checkpoint_manifest.h"
#include "agent/checkpoint/checkpoint_state.h"
#include "agent/checkpoint/pretrained_index.h"
#include "agent/models/config_json.h"
#include "base/lines.h"
#include "base/mem.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { MAX_TEXT_BYTES = 1 << 20 };

static void read_manifest(struct arena *arena, const char *text, size_t bytes, struct error *err)
{
    const char *whole =
        arena_printf(arena, "%send %016" PRIx64 "\n", text, (uint64_t)XXH64(text, bytes, 0));
    struct manifest manifest;
    if (manifest_parse(arena, "fuzz", whole, strlen(whole), &manifest, err) < 0)
        return;
    for (int i = 0; i < manifest.file_count; i++) {
        const char *path = manifest.files[i].path;
        assert(*path && *path != '/' && !strstr(path, "../") && manifest.files[i].bytes >= 0);
    }
}

static void read_state(struct arena *arena, const char *text, size_t bytes, struct error *err)
{
    struct checkpoint_state state, again;
    if (checkpoint_state_parse(arena, "fuzz", text, bytes, &state, err) < 0)
        return;
    auto_free char *printed = checkpoint_state_print(&state);
    assert(checkpoint_state_parse(arena, "fuzz", printed, strlen(printed), &again, err) == 0);
}

static void read_index(struct arena *arena, const char *text, size_t bytes, struct error *err)
{
    struct pretrained_index index;
    if (pretrained_index_parse(arena, "fuzz", text, bytes, &index, err) < 0)
        return;
    for (int i = 0; i < index.file_count; i++)
        assert(index.files[i][0] && !strchr(index.files[i], '/'));
}

static void read_config(struct arena *arena, const char *text, size_t bytes, struct error *err)
{
    struct architecture architecture, again;
    struct lines notes;
    lines_init(&notes, arena);
    if (config_json_read(arena, "fuzz", text, bytes, &architecture, &notes, err) < 0)
        return;
    auto_str struct str out;
    str_init(&out, MAX_TEXT_BYTES);
    config_json_write(&architecture, "float32", &out);
    assert(config_json_read(arena, "fuzz", str_text(&out), out.length, &again, NULL, err) == 0);
    str_clear(&out);
    config_json_write_generation(&architecture, &out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(struct arena *, const char *, size_t, struct error *) = {
        read_manifest, read_state, read_index, read_config};
    if (size == 0)
        return 0;
    auto_arena struct arena *arena = arena_open();
    struct error err = {0};
    const char *text = arena_strndup(arena, (const char *)data + 1, size - 1);
    readers[data[0] % (sizeof readers / sizeof readers[0])](arena, text, strlen(text), &err);
    assert(!err.code || err.msg[0]);
    return 0;
}
