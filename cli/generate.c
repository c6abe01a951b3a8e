#include "cli/generate.h"

#include "agent/generate/generate.h"
#include "base/cores.h"
#include "base/exit_code.h"
#include "base/mem.h"
#include "base/options.h"
#include "cli/named_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct command_line {
    struct option_arguments dirs;
    const char *prompt, *tokenizer, *temperature;
    int64_t max_tokens, seed;
    bool allow_nonfinite, help;
    struct generate_options options;
};

static int read_temperature(struct command_line *line, struct error *err)
{
    char *end;
    line->options.temperature = strtod(line->temperature, &end);
    /* Not "< 0": a NaN is not below 0 either. */
    if (*end || end == line->temperature || !(line->options.temperature >= 0) ||
        !isfinite(line->options.temperature))
        return error_set(err, ERR_CONFIG, "--temperature: '%s' is no number from 0 on",
                         line->temperature);
    return 0;
}

static int read_line(struct command_line *line, int argc, char *const *argv, struct error *err)
{
    *line = (struct command_line){.prompt = "", .temperature = "0.8", .max_tokens = 200, .seed = 1};
    const struct option_row rows[] = {
        {"DIR", 0, OPTION_ARGUMENTS, &line->dirs, NULL,
         "a Hugging Face directory (config.json, weights, tokenizer), or an id in the hub's cache",
         0, 0, NULL},
        {"prompt", 'p', OPTION_TEXT, &line->prompt, "TEXT",
         "text to continue; T5: text to read, as \"summarize: ...\"", 0, 0, NULL},
        {"max_tokens", 'n', OPTION_NUMBER, &line->max_tokens, "N",
         "largest number of new tokens; default 200", 1, 1000000, NULL},
        {"temperature", 't', OPTION_TEXT, &line->temperature, "X",
         "0: greedy, always the likeliest token; default 0.8", 0, 0, NULL},
        {"seed", 0, OPTION_NUMBER, &line->seed, "N", "seed of the random numbers; default 1", 0,
         INT64_MAX, NULL},
        {"tokenizer", 0, OPTION_TEXT, &line->tokenizer, "PATH", "tokenizer, if DIR has none", 0, 0,
         NULL},
        {"allow-nonfinite", 0, OPTION_FLAG, &line->allow_nonfinite, NULL,
         "read weights with NaN or infinity, too", 0, 0, NULL},
        {"help", 'h', OPTION_FLAG, &line->help, NULL, "print this help", 0, 0, NULL},
        {0},
    };
    if (options_parse(rows, argc - 1, argv + 1, err))
        return -1;
    if (line->help) {
        auto_str struct str text;
        str_init(&text, 16 * 1024);
        str_add(
            &text,
            "Usage: shoal generate DIR [OPTION...]\n\n"
            "Prints the text with which the model continues the prompt. T5 prints its answer to it.\n\n");
        options_help(rows, &text);
        fputs(str_text(&text), stdout);
        return 0;
    }
    if (line->dirs.count != 1)
        return error_set(err, ERR_CONFIG, "one directory is needed, %d were given",
                         line->dirs.count);
    line->options.max_tokens = line->max_tokens;
    line->options.seed = (uint64_t)line->seed;
    return read_temperature(line, err);
}

static int open_generator(const struct command_line *line, struct arena *arena,
                          struct generator **ret_generator, struct error *err)
{
    const char *dir, *tokenizer = line->tokenizer;
    if (named_model(line->dirs.items[0], arena, &dir, err))
        return -1;
    if (tokenizer && named_model(tokenizer, arena, &tokenizer, err))
        return error_wrap(err, "--tokenizer");
    return generator_open(dir, tokenizer, cores_available(), line->allow_nonfinite, ret_generator,
                          err);
}

static int run(struct command_line *line, int argc, char *const *argv)
{
    struct error err;
    if (read_line(line, argc, argv, &err))
        return exit_failed("shoal generate", &err);
    if (line->help)
        return 0;
    struct generator *generator = NULL;
    auto_arena struct arena *arena = arena_open();
    if (open_generator(line, arena, &generator, &err))
        return exit_failed("shoal generate", &err);
    auto_str struct str text;
    str_init(&text, 16 << 20);
    int result = generator_text(generator, line->prompt, &line->options, &text, &err);
    generator_close(generator);
    if (result)
        return exit_failed("shoal generate", &err);
    printf("%s\n", str_text(&text));
    return 0;
}

int generate_command(int argc, char *const *argv)
{
    struct command_line line;
    int code = run(&line, argc, argv);
    free(line.dirs.items);
    return code;
}
