#include "cli/tokenize_options.h"

enum { ROWS_MAX = 16 };

struct table {
    struct option_row rows[ROWS_MAX];
};

static struct table table_of(struct tokenize_options *o)
{
    return (struct table){{
        {"tokenizer", 't', OPTION_TEXT, &o->tokenizer, "PATH",
         "tokenizer.json, spiece.model, tokenizer.model, vocab.json, vocab.txt, a directory, or an id in the hub's cache",
         0, 0, NULL},
        {"jsonl", 0, OPTION_FLAG, &o->jsonl, NULL, "each line is a document: a JSON object", 0, 0,
         NULL},
        {"text_column", 0, OPTION_TEXT, &o->text_column, "NAME",
         "the field of a JSON line that has the text (text)", 0, 0, NULL},
        {"out", 'o', OPTION_TEXT, &o->out, "FILE",
         "write a token file (llm.c's .bin) instead of printing", 0, 0, NULL},
        {"pieces", 0, OPTION_FLAG, &o->pieces, NULL, "print pieces instead of ids", 0, 0, NULL},
        {"no_special", 0, OPTION_FLAG, &o->no_special, NULL, "add no special tokens around a text",
         0, 0, NULL},
        {"decode", 0, OPTION_FLAG, &o->decode, NULL, "the files have ids: print their text", 0, 0,
         NULL},
        {"help", 'h', OPTION_FLAG, &o->help, NULL, "print this help", 0, 0, NULL},
        {"FILE", 0, OPTION_ARGUMENTS, &o->files, NULL, "plain or gzipped text; -: stdin", 0, 0,
         NULL},
    }};
}

int tokenize_options_parse(struct tokenize_options *options, int argc, char *const *argv,
                           struct error *err)
{
    *options = (struct tokenize_options){0};
    struct table table = table_of(options);
    if (options_parse(table.rows, argc, argv, err) < 0)
        return -1;
    if (options->help)
        return 0;
    if (!options->tokenizer)
        return error_set(err, ERR_CONFIG, "--tokenizer PATH must be given");
    if (options->files.count == 0)
        return error_set(err, ERR_CONFIG, "nothing to read: give FILE..., or - for stdin");
    if (options->decode && (options->out || options->jsonl || options->pieces))
        return error_set(err, ERR_CONFIG, "--decode goes with none of --out, --jsonl, --pieces");
    if (options->out && (options->pieces || options->no_special))
        return error_set(err, ERR_CONFIG, "--%s is for printing: not with --out",
                         options->pieces ? "pieces" : "no_special");
    if (options->text_column && !options->jsonl)
        return error_set(err, ERR_CONFIG, "--text_column is for JSON lines: give --jsonl, too");
    if (!options->text_column)
        options->text_column = "text";
    return 0;
}

void tokenize_options_help(struct str *out)
{
    struct tokenize_options none;
    struct table table = table_of(&none);
    str_add(out,
            "Usage: shoal tokenize --tokenizer PATH [OPTION...] FILE...\n"
            "\n"
            "Prints the token ids of each document in a line. A document is a file, or a line\n"
            "of one with --jsonl. With --out they go to one token file that training can read:\n"
            "each document begins with the tokenizer's bos (or eos, if it has no bos); 16 bits\n"
            "for each id if all ids of the tokenizer fit, else 32.\n"
            "\n");
    options_help(table.rows, out);
    str_add(out, "\nExit code: 0 done, 1 reading or writing failed, 2 bad input.\n");
}
