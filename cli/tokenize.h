/* The command `shoal tokenize`: texts to token ids and back. */
#ifndef SHOAL_CLI_TOKENIZE_H
#define SHOAL_CLI_TOKENIZE_H

/* argv[0] is the command's name. Returns the program's exit code; errors are on stderr. */
int tokenize_command(int argc, char *const *argv);
#endif
