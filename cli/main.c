/* shoal: finds the command and runs it. A new command is a row here and a file beside this one. */
#include <stdio.h>
#include <string.h>

#include "base/contract.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "cli/export.h"
#include "cli/generate.h"
#include "cli/get.h"
#include "cli/inspect.h"
#include "cli/plan.h"
#include "cli/run.h"
#include "cli/tokenize.h"
#include "cli/top.h"

struct command {
    const char *name;
    const char *summary; /* for the help; one line */
    int (*run)(int argc, char *const *argv);
};

static const struct command commands[] = {
    {"run", "run PyTorchJobs on this machine, pods as processes", run_command},
    {"top", "show the PyTorchJobs of a cluster, or of this machine, as a table", top_command},
    {"get", "tell how a PyTorchJob of a cluster, or of this machine, is doing", get_command},
    {"plan", "print what a training run needs: memory, traffic, FLOPs", plan_command},
    {"recommend", "print sharding flags and machines for a model of that size", recommend_command},
    {"inspect", "print what a checkpoint or a model on disk holds", inspect_command},
    {"export", "write a checkpoint as a Hugging Face directory", export_command},
    {"generate", "generate text with a trained language model", generate_command},
    {"tokenize", "turn texts into token ids and back, or into a token file", tokenize_command},
};

static void print_help(FILE *out)
{
    fputs("Usage: shoal COMMAND [OPTION...]\n\n", out);
    for (size_t i = 0; i < array_length(commands); i++)
        fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].summary);
    fputs("\n`shoal COMMAND --help` describes a command; `shoal --version` prints the version.\n",
          out);
}

/* The command that somebody may have meant; NULL: none is near. */
static const char *nearest(const char *name)
{
    const char *found = NULL;
    int least = nearest_limit(name) + 1;
    for (size_t i = 0; i < array_length(commands); i++) {
        int distance = nearest_distance(name, commands[i].name, least - 1);
        if (distance < least) {
            least = distance;
            found = commands[i].name;
        }
    }
    return found;
}

static int unknown(const char *name)
{
    const char *what = name[0] == '-' ? "option" : "command", *near = nearest(name);
    fprintf(stderr, "shoal: unknown %s %s", what, name);
    if (near)
        fprintf(stderr, " (the nearest is %s)", near);
    fputs("; there are --help --version", stderr);
    for (size_t i = 0; i < array_length(commands); i++)
        fprintf(stderr, " %s", commands[i].name);
    fputs("\n", stderr);
    return 2;
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return 2;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        print_help(stdout);
        return 0;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("shoal %s\n", SHOAL_VERSION);
        return 0;
    }
    for (size_t i = 0; i < array_length(commands); i++)
        if (!strcmp(argv[1], commands[i].name))
            return commands[i].run(argc - 1, argv + 1);
    return unknown(argv[1]);
}

int main(int argc, char **argv)
{
    struct error err;
    if (file_open_standard(&err) < 0) {
        fprintf(stderr, "shoal: %s\n", err.msg);
        return 1;
    }
    int exit_code = run(argc, argv);
    /* That the disk behind stdout is full is seen only when its buffers are written. */
    if (file_flush_standard(&err) == 0)
        return exit_code;
    fprintf(stderr, "shoal: %s\n", err.msg);
    return exit_code ? exit_code : 1;
}
