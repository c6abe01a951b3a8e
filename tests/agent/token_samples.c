#include "tests/agent/token_samples.h"

#include "base/mem.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void samples_take(struct token_source *source, struct samples *out)
{
    struct error err;
    memset(out, 0, sizeof *out);
    for (bool end = false;; out->count++) {
        assert_true(out->count < SAMPLES_MAX);
        assert_ok(
            token_source_next(source, out->ids[out->count], out->targets[out->count], &end, &err),
            &err);
        if (end)
            return;
    }
}

struct samples *samples_of_epoch(const struct token_options *options, int64_t epoch)
{
    struct samples *samples = xcalloc(1, sizeof *samples);
    struct token_source *source = texts_open(options);
    struct error err;
    assert_ok(token_source_set_epoch(source, epoch, &err), &err);
    samples_take(source, samples);
    token_source_close(source);
    return samples;
}

void samples_write_c4(const char *dir)
{
    static const int64_t counts[] = {17, 30, 3};
    int64_t first = 0;
    for (int i = 0; i < 3; i++) {
        auto_free char *lines = texts_lines(first, counts[i]);
        auto_free char *name = xasprintf("allenai/c4/en/c4-train.%05d-of-00003.json.gz", i);
        free(texts_write_gzip(dir, name, lines, strlen(lines), 1 + i));
        first += counts[i];
    }
    auto_free char *lines = texts_lines(100, 5);
    free(texts_write_gzip(dir, "allenai/c4/en/c4-validation.00000-of-00001.json.gz", lines,
                          strlen(lines), 1));
}

struct token_options samples_c4_options(const char *dir, int64_t window)
{
    struct token_options options = texts_options("allenai/c4", window);
    options.source.root = dir;
    options.source.dataset_config_name = "en";
    options.shuffle = true;
    options.source.shuffle_buffer = 8;
    options.seed = 4;
    return options;
}
