/* The command `shoal inspect`: what a checkpoint or a model on disk holds. */
#ifndef SHOAL_CLI_INSPECT_H
#define SHOAL_CLI_INSPECT_H

/* argv[0] is the command's name. Returns the program's exit code: 0 complete and undamaged, 1 not,
 * 2 nothing of the kind; errors are on stderr. */
int inspect_command(int argc, char *const *argv);
#endif
