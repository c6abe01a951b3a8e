#include "agent/dataset/token_sniff.h"

#include "agent/dataset/llmc_bin.h"
#include "agent/dataset/megatron.h"
#include "agent/dataset/packed_file.h"
#include "base/mem.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>

enum { SNIFF_BYTES = 4096 };

static const char *const names[] = {
#define FORMAT_NAME(kind, name, spellings) [TOKENS_##kind] = #name
#define COMMA                              ,
    TOKEN_FORMATS(FORMAT_NAME, COMMA)
#undef COMMA
#undef FORMAT_NAME
};

const char *token_format_name(enum token_format format)
{
    return (size_t)format < array_length(names) ? names[format] : NULL;
}

static bool begins(const uint8_t *bytes, size_t size, const char *magic)
{
    return size >= strlen(magic) && memcmp(bytes, magic, strlen(magic)) == 0;
}

/* Whether the name ends with it, or with it and ".gz". */
static bool is_named(const char *path, const char *suffix)
{
    size_t length = strlen(path), tail = strlen(suffix);
    if (length > 3 && strcmp(path + length - 3, ".gz") == 0)
        length -= 3;
    return length >= tail && memcmp(path + length - tail, suffix, tail) == 0;
}

static int judge(const char *path, const uint8_t *bytes, size_t size, enum token_format *ret_format,
                 struct error *err)
{
    if (begins(bytes, size, "PAR1"))
        return error_set(err, ERR_UNSUPPORTED,
                         "%s: Parquet is not read: save the data set as JSON lines, or tokenized "
                         "with save_to_disk",
                         path);
    if (begins(bytes, size, "ARROW1"))
        return error_set(err, ERR_UNSUPPORTED,
                         "%s: Arrow's file format is not read, only its stream format, which "
                         "save_to_disk writes",
                         path);
    size_t first = begins(bytes, size, "\xef\xbb\xbf") ? 3 : 0; /* a byte order mark */
    while (first < size && isspace(bytes[first]))
        first++;
    /* Formats with a magic number come first. A NUL is in no text that people write, but in nearly
     * all files of ids. */
    if (megatron_is(bytes, size))
        *ret_format = TOKENS_MEGATRON;
    else if (llmc_bin_is(bytes, size))
        *ret_format = TOKENS_LLMC;
    else if (begins(bytes, size, "\xff\xff\xff\xff"))
        *ret_format = TOKENS_ARROW;
    else if (memchr(bytes, 0, size))
        return error_set(
            err, ERR_INPUT,
            "%s: neither text nor a known format of ids (llm.c's .bin, Megatron's .idx "
            "with its .bin, save_to_disk): set data.format if it is one",
            path);
    else if (is_named(path, ".tsv") || is_named(path, ".csv"))
        *ret_format = is_named(path, ".tsv") ? TOKENS_TSV : TOKENS_CSV;
    else if (first < size && bytes[first] == '[' && !is_named(path, ".txt"))
        return error_set(
            err, ERR_UNSUPPORTED,
            "%s: one JSON array is not read: write one object per line (data.format=text "
            "if it is text that begins with a bracket)",
            path);
    else if (is_named(path, ".jsonl") || is_named(path, ".json"))
        *ret_format = TOKENS_JSONL; /* the first line may be a broken one */
    else
        *ret_format = first < size && bytes[first] == '{' && !is_named(path, ".txt") ? TOKENS_JSONL
                                                                                     : TOKENS_TEXT;
    return 0;
}

static int read_first(const char *path, uint8_t bytes[SNIFF_BYTES], size_t *ret_size,
                      bool *ret_packed, struct error *err)
{
    struct packed_file *file;
    if (packed_file_open(path, &file, err) < 0)
        return -1;
    *ret_packed = packed_file_is_gzip(file);
    size_t got = 1;
    int result = 0;
    /* a gzip member may be a line end alone */
    for (*ret_size = 0; result == 0 && got > 0 && *ret_size < SNIFF_BYTES; *ret_size += got)
        result = packed_file_read(file, bytes + *ret_size, SNIFF_BYTES - *ret_size, &got, err);
    packed_file_close(file);
    return result < 0 ? error_wrap(err, "%s", path) : 0;
}

int token_sniff(const char *path, enum token_format wanted, enum token_format *ret_format,
                struct error *err)
{
    uint8_t bytes[SNIFF_BYTES];
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return error_set(err, ERR_UNSUPPORTED,
                         "%s: a pipe or a device, and data is read more than once: put it into a "
                         "file",
                         path);
    if (wanted != TOKENS_AUTO) {
        *ret_format = wanted;
        return 0;
    }
    size_t size;
    bool packed;
    if (read_first(path, bytes, &size, &packed, err) < 0)
        return -1;
    if (size == 0)
        return error_set(err, ERR_INPUT, "%s: the file is empty: download it again", path);
    if (judge(path, bytes, size, ret_format, err) < 0)
        return -1;
    bool is_text = *ret_format == TOKENS_JSONL || *ret_format == TOKENS_TEXT ||
                   *ret_format == TOKENS_TSV || *ret_format == TOKENS_CSV;
    if (packed && !is_text)
        return error_set(err, ERR_UNSUPPORTED,
                         "%s: files of ids are mapped: unpack it first (gunzip)", path);
    return 0;
}
