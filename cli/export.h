/* The command `shoal export`: a checkpoint as a Hugging Face directory. */
#ifndef SHOAL_CLI_EXPORT_H
#define SHOAL_CLI_EXPORT_H

/* argv[0] is the command's name. Returns the program's exit code: 0 done, 1 it could not be
 * written, 2 bad input; errors are on stderr. */
int export_command(int argc, char *const *argv);
#endif
