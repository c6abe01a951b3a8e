/* The options of `shoal run`, checked. */
#ifndef SHOAL_CLI_RUN_OPTIONS_H
#define SHOAL_CLI_RUN_OPTIONS_H

#include "base/options.h"
#include "cli/terminal.h"

struct run_options {
    struct option_list files;   /* -f: paths or "-" */
    struct option_list folders; /* -k */
    const char *log_dir;
    int progress;                  /* enum terminal_mode */
    int64_t default_backoff_limit; /* for jobs that state none; -1: unlimited */
    int64_t restart_delay_s;       /* before a second restart; doubles up to the next */
    int64_t restart_delay_max_s;
    bool keep_ports;
    bool help;
};

/* argv without the command's name. With --help nothing else is checked. */
int run_options_parse(struct run_options *options, int argc, char *const *argv, struct error *err);
void run_options_help(struct str *out);
#endif
