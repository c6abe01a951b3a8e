/* shoal-operator. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/contract.h"
#include "base/file.h"
#include "base/log.h"
#include "base/resident.h"
#include "base/str.h"
#include "operator/program.h"
#include "operator/wait_for_name.h"

static const char *environment(const char *name)
{
    return getenv(name);
}

/* What is not found is a file that was named, what is unsupported a field in it; what exists
 * already is another program at an address. */
static bool is_of_configuration(enum error_code code)
{
    return code == ERR_CONFIG || code == ERR_INPUT || code == ERR_NOT_FOUND ||
           code == ERR_UNSUPPORTED || code == ERR_EXISTS;
}

static int fail(const struct error *err)
{
    fprintf(stderr, "shoal-operator: %s\n", err->msg);
    return is_of_configuration(err->code) ? EXIT_CONFIG : EXIT_FAILED;
}

static void print_help(void)
{
    auto_str struct str text;
    str_init(&text, 1 << 16);
    operator_config_help(&text);
    fputs(str_text(&text), stdout);
}

/* The end of what only prints. */
static int printed(void)
{
    struct error err;
    return file_flush_standard(&err) < 0 ? fail(&err) : EXIT_DONE;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "wait-for"))
        return wait_for_name_main(argc - 2, argv + 2);
    struct operator_config config;
    struct error err;
    if (operator_config_parse(&config, argc - 1, argv + 1, environment, &err) < 0)
        return fail(&err);
    if (config.help) {
        print_help();
        return printed();
    }
    if (config.version) {
        printf("shoal-operator %s\n", SHOAL_VERSION);
        return printed();
    }
    log_set_level((enum log_level)config.log_level);
    mem_return_large(); /* of 1,000 jobs /metrics is 1 MB, printed anew each second */
    struct program *program;
    int result = program_open(&program, &config, &err);
    if (result == 0)
        result = program_run(program, &err);
    program_close(program);
    return result < 0 ? fail(&err) : EXIT_DONE;
}
