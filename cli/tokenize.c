#include "cli/tokenize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/dataset/json_line.h"
#include "agent/dataset/packed_file.h"
#include "agent/dataset/text_file.h"
#include "agent/text/tokenizer.h"
#include "base/contract.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/named_model.h"
#include "cli/token_file.h"
#include "cli/tokenize_options.h"

enum { HELP_MAX_BYTES = 16 * 1024, MAX_IDS_TEXT_BYTES = 256 << 20, READ_BYTES = 64 * 1024 };

struct job {
    struct tokenize_options options;
    struct tokenizer *tokenizer;
    struct token_file *out; /* NULL: print */
    int32_t separator;      /* before each document of `out` */
    struct tokens ids;      /* of the document at hand */
    int64_t documents;
};

/* ---- printing ---- */

/* So that a space parts two pieces and a line end two documents. */
static void print_piece(const char *piece, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)piece[i];
        if (c <= ' ' || c == '\\' || c == 0x7f)
            printf("\\x%02x", c);
        else
            putchar(c);
    }
}

static void print_ids(const struct job *job)
{
    for (size_t i = 0; i < job->ids.count; i++) {
        size_t bytes = 0;
        const char *piece = tokenizer_piece(job->tokenizer, job->ids.ids[i], &bytes);
        if (i > 0)
            putchar(' ');
        if (job->options.pieces)
            print_piece(piece, bytes);
        else
            printf("%d", job->ids.ids[i]);
    }
    putchar('\n');
}

/* ---- documents ---- */

static int take_document(struct job *job, const char *text, size_t bytes, struct error *err)
{
    bool around = !job->out && !job->options.no_special;
    tokens_clear(&job->ids);
    if (job->out)
        tokens_add(&job->ids, job->separator);
    if (tokenizer_encode(job->tokenizer, text, bytes, around, &job->ids, err) < 0)
        return -1;
    job->documents++;
    if (job->out)
        return token_file_add(job->out, job->ids.ids, job->ids.count, err);
    print_ids(job);
    return 0;
}

static bool is_stdin(const char *path)
{
    return strcmp(path, "-") == 0;
}

static int take_json_line(struct job *job, const char *path, const struct text_line *line,
                          struct error *err)
{
    const char *text;
    size_t bytes;
    if (line->too_long)
        return error_set(err, ERR_INPUT, "%s:%lld: longer than %d bytes", path,
                         (long long)line->number, TEXT_FILE_MAX_LINE_BYTES);
    if (text_line_is_blank(line))
        return 0;
    struct json *json =
        json_line_text(line->text, line->bytes, job->options.text_column, &text, &bytes, err);
    if (!json)
        return error_wrap(err, "%s:%lld", path, (long long)line->number);
    int result = take_document(job, text, bytes, err);
    json_line_free(json);
    return result < 0 ? error_wrap(err, "%s:%lld", path, (long long)line->number) : 0;
}

static int take_json_lines(struct job *job, const char *path, struct error *err)
{
    struct text_file *file;
    if (is_stdin(path) ? text_file_open_fd(dup(STDIN_FILENO), path, &file, err)
                       : text_file_open(path, 0, 0, &file, err))
        return -1;
    struct text_line line;
    bool end = false;
    int result;
    while ((result = text_file_next(file, &line, &end, err)) == 0 && !end)
        if ((result = take_json_line(job, path, &line, err)) < 0)
            break;
    text_file_close(file);
    return result;
}

/* A whole file, unpacked if it is gzipped. */
static int read_whole(const char *path, struct str *out, struct error *err)
{
    struct packed_file *file;
    if (is_stdin(path) ? packed_file_open_fd(dup(STDIN_FILENO), path, &file, err)
                       : packed_file_open(path, &file, err))
        return -1;
    auto_free char *buffer = xmalloc(READ_BYTES);
    size_t bytes;
    int result;
    while ((result = packed_file_read(file, buffer, READ_BYTES, &bytes, err)) == 0 && bytes > 0 &&
           !out->truncated)
        str_add_bytes(out, buffer, bytes);
    packed_file_close(file);
    if (result < 0)
        return error_wrap(err, "%s", path);
    if (out->truncated)
        return error_set(err, ERR_INPUT, "%s: larger than %zu bytes: give it in parts", path,
                         out->cap);
    return 0;
}

static int take_file(struct job *job, const char *path, struct error *err)
{
    auto_str struct str text;
    str_init(&text, TOKENIZER_MAX_TEXT_BYTES);
    if (read_whole(path, &text, err) < 0)
        return -1;
    if (take_document(job, str_text(&text), text.length, err) < 0)
        return error_wrap(err, "%s", path);
    return 0;
}

/* Prints the text of a line of ids. */
static int decode_line(struct job *job, char *line, struct error *err)
{
    auto_str struct str text;
    str_init(&text, MAX_IDS_TEXT_BYTES);
    tokens_clear(&job->ids);
    for (char *word; (word = strsep(&line, " \t\r"));) {
        int64_t id;
        if (!*word)
            continue;
        if (!str_to_i64(word, 0, INT32_MAX, &id))
            return error_set(err, ERR_INPUT, "word %zu, %.40s, is no id", job->ids.count + 1, word);
        tokens_add(&job->ids, (int32_t)id);
    }
    if (tokenizer_decode(job->tokenizer, job->ids.ids, job->ids.count, job->options.no_special,
                         &text, err) < 0)
        return -1;
    fwrite(str_text(&text), 1, text.length, stdout);
    return 0;
}

/* A document a line, as they were printed; their texts are apart by a line's end. */
static int decode_file(struct job *job, const char *path, struct error *err)
{
    auto_str struct str ids;
    str_init(&ids, MAX_IDS_TEXT_BYTES);
    if (read_whole(path, &ids, err) < 0)
        return -1;
    char *rest = ids.text;
    size_t number = 1;
    for (char *line; (line = strsep(&rest, "\n")) && (*line || rest); number++) {
        if (number > 1)
            fputc('\n', stdout);
        if (decode_line(job, line, err) < 0)
            return error_wrap(err, "%s: line %zu", path, number);
    }
    return 0;
}

static int take_files(struct job *job, struct error *err)
{
    const struct option_arguments *files = &job->options.files;
    int (*take_one)(struct job *, const char *, struct error *) = job->options.decode ? decode_file
                                                                  : job->options.jsonl
                                                                      ? take_json_lines
                                                                      : take_file;
    for (int i = 0; i < files->count; i++)
        if (take_one(job, files->items[i], err) < 0)
            return -1;
    return 0;
}

/* ---- the command ---- */

static int create_out(struct job *job, struct error *err)
{
    struct tokenizer_special special = tokenizer_special(job->tokenizer);
    /* As llm.c's scripts do: GPT-2's <|endoftext|> or Llama 3's <|begin_of_text|> stands before
     * each document. */
    job->separator = special.bos >= 0 ? special.bos : special.eos;
    if (job->separator < 0)
        return error_set(err, ERR_INPUT,
                         "%s has neither bos nor eos, which must part the documents: name them in "
                         "a tokenizer_config.json beside it",
                         job->options.tokenizer);
    bool wide = tokenizer_vocabulary(job->tokenizer) > UINT16_MAX + 1;
    return token_file_create(job->options.out, wide, &job->out, err);
}

static int open_tokenizer(struct job *job, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    const char *path;
    if (named_model(job->options.tokenizer, arena, &path, err))
        return error_wrap(err, "--tokenizer");
    return tokenizer_open(path, &job->tokenizer, err);
}

static int run(struct job *job, struct error *err)
{
    if (open_tokenizer(job, err) < 0 || (job->options.out && create_out(job, err) < 0) ||
        take_files(job, err) < 0)
        return -1;
    if (file_flush_standard(err) < 0)
        return -1;
    if (!job->out)
        return 0;
    int64_t ids;
    if (token_file_finish(take(job->out), &ids, err) < 0)
        return -1;
    fprintf(stderr, "shoal tokenize: %s: %lld documents, %lld ids\n", job->options.out,
            (long long)job->documents, (long long)ids);
    return 0;
}

int tokenize_command(int argc, char *const *argv)
{
    struct job job = {0};
    struct error err;
    int result = tokenize_options_parse(&job.options, argc - 1, argv + 1, &err);
    if (result == 0 && job.options.help) {
        auto_str struct str help;
        str_init(&help, HELP_MAX_BYTES);
        tokenize_options_help(&help);
        fputs(str_text(&help), stdout);
    } else if (result == 0) {
        result = run(&job, &err);
    }
    token_file_abandon(job.out);
    tokens_free(&job.ids);
    tokenizer_close(job.tokenizer);
    free(job.options.files.items);
    return result == 0 ? EXIT_DONE : exit_failed("shoal tokenize", &err);
}
