/* `shoal get`: one job of a cluster, or of this machine, as a story. */
#ifndef SHOAL_CLI_GET_H
#define SHOAL_CLI_GET_H

int get_command(int argc, char *const *argv);
#endif
