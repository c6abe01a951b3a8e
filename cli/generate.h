/* The command `shoal generate`: text from a model on disk. */
#ifndef SHOAL_CLI_GENERATE_H
#define SHOAL_CLI_GENERATE_H

/* argv[0] is the command's name. Returns the program's exit code; errors are on stderr. */
int generate_command(int argc, char *const *argv);
#endif
