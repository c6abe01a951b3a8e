#include "tests/agent/token_texts.h"

#include "base/mem.h"
#include "base/str.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

static int encode_bytes(void *ctx, const char *text, size_t bytes, struct tokens *ids,
                        struct error *err)
{
    (void)ctx, (void)err;
    for (size_t i = 0; i < bytes; i++)
        tokens_add(ids, (unsigned char)text[i] + TEXTS_FIRST);
    return 0;
}

struct token_encoder texts_encoder(void)
{
    return (struct token_encoder){.encode = encode_bytes, .bos = TEXTS_BOS, .eos = TEXTS_EOS};
}

struct token_options texts_options(const char *dataset, int64_t window)
{
    return (struct token_options){
        .source = {.dataset = dataset, .root = ".", .text_column = "text"},
        .split = "train",
        .window = window,
        .vocab_size = TEXTS_VOCABULARY,
        .encoder = texts_encoder()};
}

static char *make_path(const char *dir, const char *name)
{
    char *path = xasprintf("%s/%s", dir, name);
    for (char *p = path + strlen(dir) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(path, 0777);
        *p = '/';
    }
    return path;
}

char *texts_write(const char *dir, const char *name, const void *bytes, size_t size)
{
    char *path = make_path(dir, name);
    auto_fclose FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    return path;
}

char *texts_write_gzip(const char *dir, const char *name, const void *bytes, size_t size,
                       int members)
{
    char *path = make_path(dir, name);
    size_t done = 0;
    for (int i = 0; i < members; i++) {
        size_t end = i == members - 1 ? size : size * (size_t)(i + 1) / (size_t)members;
        gzFile file = gzopen(path, i ? "ab" : "wb");
        assert_non_null(file);
        assert_int_equal(gzwrite(file, (const char *)bytes + done, (unsigned)(end - done)),
                         (int)(end - done));
        gzclose(file);
        done = end;
    }
    return path;
}

char *texts_document(int64_t i)
{
    size_t bytes = 1 + (size_t)(i * 7 % 11);
    char *text = xcalloc(bytes + 8, 1);
    int head = snprintf(text, 8, "%lld:", (long long)(i % 1000));
    for (size_t k = 0; k < bytes; k++)
        text[(size_t)head + k] = (char)('a' + (i + (int64_t)k) % 26);
    return text;
}

char *texts_lines(int64_t first, int64_t count)
{
    struct str lines;
    str_init(&lines, 1 << 24);
    for (int64_t i = first; i < first + count; i++) {
        auto_free char *text = texts_document(i);
        str_printf(&lines, "{\"url\": \"u\", \"text\": \"%s\"}\n", text);
    }
    assert_false(lines.truncated);
    return lines.text;
}

struct token_source *texts_open(const struct token_options *options)
{
    struct token_source *source;
    struct error err;
    assert_ok(token_source_open(options, &source, &err), &err);
    return source;
}

void texts_open_fails(const struct token_options *options, enum error_code code, const char *part)
{
    struct token_source *source = NULL;
    struct error err;
    assert_fails(token_source_open(options, &source, &err), &err, code, part);
    assert_null(source);
}
