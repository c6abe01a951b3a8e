/* Two commands. `shoal plan` prints what a training run will need, from its configuration alone.
 * `shoal recommend` prints the flags and machines for a model of that size. */
#ifndef SHOAL_CLI_PLAN_H
#define SHOAL_CLI_PLAN_H

/* argv[0] is the command's name. Returns the program's exit code; errors are on stderr. */
int plan_command(int argc, char *const *argv);
int recommend_command(int argc, char *const *argv);
#endif
