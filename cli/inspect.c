#include "cli/inspect.h"

#include <stdio.h>

#include "agent/checkpoint/inspect.h"
#include "base/contract.h"
#include "base/exit_code.h"
#include "base/mem.h"
#include "base/options.h"

enum { TEXT_MAX_BYTES = 64 << 20 };

struct inspect_options {
    bool quick, tensors, json, help;
};

struct table {
    struct option_row rows[5];
};

static struct table table_of(struct inspect_options *o)
{
    return (struct table){{
        {"quick", 0, OPTION_FLAG, &o->quick, NULL,
         "look at headers and sizes only, do not compare checksums", 0, 0, NULL},
        {"tensors", 0, OPTION_FLAG, &o->tensors, NULL, "a line for each tensor", 0, 0, NULL},
        {"json", 0, OPTION_FLAG, &o->json, NULL, "all of it as one JSON object", 0, 0, NULL},
        {"help", 'h', OPTION_FLAG, &o->help, NULL, "print this help", 0, 0, NULL},
    }};
}

static int print_help(void)
{
    struct inspect_options none;
    struct table table = table_of(&none);
    auto_str struct str help;
    str_init(&help, TEXT_MAX_BYTES);
    str_add(
        &help,
        "Usage: shoal inspect PATH... [OPTION...]\n"
        "\n"
        "Prints what is in a checkpoint, a directory of checkpoints, a Hugging Face model or a\n"
        "safetensors file, and whether it is complete and undamaged.\n"
        "\n");
    options_help(table.rows, &help);
    str_add(&help, "\nExit code: 0 all is well, 1 something is missing or damaged, 2 bad input.\n");
    fputs(str_text(&help), stdout);
    return EXIT_DONE;
}

static int inspect(const char *path, const struct inspect_options *o)
{
    auto_arena struct arena *arena = arena_open();
    struct inspection in;
    struct error err;
    if (inspect_read(arena, path, !o->quick, &in, &err) < 0)
        return exit_failed("shoal inspect", &err);
    auto_str struct str text;
    str_init(&text, TEXT_MAX_BYTES);
    if (o->json)
        inspect_json(&in, path, &text);
    else
        inspect_print(&in, path, o->tensors, &text);
    fputs(str_text(&text), stdout);
    return in.problems.count > 0 ? EXIT_FAILED : EXIT_DONE;
}

int inspect_command(int argc, char *const *argv)
{
    auto_arena struct arena *arena = arena_open();
    struct inspect_options options = {0};
    const struct table table = table_of(&options);
    char **flags = arena_array(arena, char *, argc);
    const char **paths = arena_array(arena, const char *, argc);
    int flag_count = 0, path_count = 0, worst = EXIT_DONE;
    struct error err;
    /* No option takes a value here, so the dash alone tells options from paths, in any order. */
    for (int i = 1; i < argc; i++)
        if (argv[i][0] == '-')
            flags[flag_count++] = argv[i];
        else
            paths[path_count++] = argv[i];
    if (options_parse(table.rows, flag_count, flags, &err) < 0)
        return exit_failed("shoal inspect", &err);
    if (options.help)
        return print_help();
    if (path_count == 0) {
        fputs("shoal inspect: nothing to inspect: give a PATH\n", stderr);
        return EXIT_CONFIG;
    }
    for (int i = 0; i < path_count; i++) {
        int code = inspect(paths[i], &options);
        worst = code > worst ? code : worst;
    }
    return worst;
}
