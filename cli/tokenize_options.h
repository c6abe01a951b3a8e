/* The options of `shoal tokenize`, checked. */
#ifndef SHOAL_CLI_TOKENIZE_OPTIONS_H
#define SHOAL_CLI_TOKENIZE_OPTIONS_H

#include "base/options.h"

struct tokenize_options {
    const char *tokenizer;
    struct option_arguments files; /* paths or "-" */
    const char *text_column;       /* of JSON lines */
    const char *out;               /* NULL: print */
    bool jsonl, pieces, decode, no_special, help;
};

/* argv without the command's name. The caller frees files.items, also after an error. With --help
 * nothing else is checked. */
int tokenize_options_parse(struct tokenize_options *options, int argc, char *const *argv,
                           struct error *err);
void tokenize_options_help(struct str *out);
#endif
