/* The command `shoal run`: manifests in, one job after the other run on this machine. */
#ifndef SHOAL_CLI_RUN_H
#define SHOAL_CLI_RUN_H

/* argv[0] is the command's name. Returns the program's exit code; errors are on stderr. */
int run_command(int argc, char *const *argv);
#endif
