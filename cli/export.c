#include "cli/export.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/checkpoint/export_checkpoint.h"
#include "base/contract.h"
#include "base/exit_code.h"
#include "base/options.h"
#include "base/str.h"
#include "cli/named_model.h"

enum { HELP_MAX_BYTES = 1 << 14, DEFAULT_SHARD_MIB = 5 << 10 };

enum export_choice { EXPORT_AUTO, EXPORT_F32, EXPORT_BF16 };

struct export_options {
    struct option_arguments paths;
    const char *config, *tokenizer;
    int dtype; /* enum export_choice */
    int64_t max_shard_mib;
    bool allow_nonfinite, help;
};

struct table {
    struct option_row rows[8];
};

static struct table table_of(struct export_options *o)
{
    static const char *const dtypes[] = {
        [EXPORT_AUTO] = "auto", [EXPORT_F32] = "float32", [EXPORT_BF16] = "bfloat16", NULL};
    return (struct table){{
        {"CHECKPOINT DIRECTORY", 0, OPTION_ARGUMENTS, &o->paths, NULL,
         "a checkpoint, or a directory of them (the newest); where the model goes", 0, 0, NULL},
        {"dtype", 0, OPTION_CHOICE, &o->dtype, "DTYPE",
         "of the weights: auto (as saved), float32 or bfloat16", 0, 0, dtypes},
        {"max-shard-mib", 0, OPTION_NUMBER, &o->max_shard_mib, "MIB",
         "largest size of one file of weights (5120)", 1, 1 << 20, NULL},
        {"config", 0, OPTION_TEXT, &o->config, "FILE",
         "the model's config.json, if the checkpoint has none", 0, 0, NULL},
        {"tokenizer", 0, OPTION_TEXT, &o->tokenizer, "DIR",
         "copy the tokenizer's files from there (default: those of the run)", 0, 0, NULL},
        {"allow-nonfinite", 0, OPTION_FLAG, &o->allow_nonfinite, NULL,
         "weights with NaN or infinity too", 0, 0, NULL},
        {"help", 'h', OPTION_FLAG, &o->help, NULL, "print this help", 0, 0, NULL},
    }};
}

static int print_help(const struct table *table)
{
    auto_str struct str help;
    str_init(&help, HELP_MAX_BYTES);
    str_add(&help,
            "Usage: shoal export CHECKPOINT DIRECTORY [OPTION...]\n"
            "\n"
            "Writes a language model's checkpoint as a Hugging Face directory: config.json,\n"
            "generation_config.json and model.safetensors, or several files and their index.\n"
            "\n");
    options_help(table->rows, &help);
    fputs(str_text(&help), stdout);
    return EXIT_DONE;
}

static int run(struct export_options *o, int argc, char *const *argv)
{
    const struct table table = table_of(o);
    struct error err;
    if (options_parse(table.rows, argc - 1, argv + 1, &err) < 0)
        return exit_failed("shoal export", &err);
    if (o->help)
        return print_help(&table);
    if (o->paths.count != 2) {
        fputs("shoal export: give a CHECKPOINT and a DIRECTORY\n", stderr);
        return EXIT_CONFIG;
    }
    auto_arena struct arena *arena = arena_open();
    struct export_request request = {
        .checkpoint = o->paths.items[0],
        .directory = o->paths.items[1],
        .config = o->config,
        .tokenizer = o->tokenizer,
        .as_saved = o->dtype == EXPORT_AUTO,
        .dtype = o->dtype == EXPORT_BF16 ? DTYPE_BF16 : DTYPE_F32,
        .max_file_bytes = o->max_shard_mib << 20,
        .allow_nonfinite = o->allow_nonfinite,
    };
    bool has_tokenizer = false;
    if (request.tokenizer[0] && named_model(request.tokenizer, arena, &request.tokenizer, &err)) {
        error_wrap(&err, "--tokenizer");
        return exit_failed("shoal export", &err);
    }
    if (export_checkpoint(&request, &has_tokenizer, &err) < 0)
        return exit_failed("shoal export", &err);
    if (!has_tokenizer)
        fputs("shoal export: no tokenizer is copied: the checkpoint names none that is there; "
              "--tokenizer DIR gives one\n",
              stderr);
    printf("Model saved: %s\n", request.directory);
    return EXIT_DONE;
}

int export_command(int argc, char *const *argv)
{
    struct export_options o = {.config = "", .tokenizer = "", .max_shard_mib = DEFAULT_SHARD_MIB};
    int code = run(&o, argc, argv);
    free(o.paths.items);
    return code;
}
