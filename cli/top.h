/* `shoal top`: the jobs of a cluster as a table. */
#ifndef SHOAL_CLI_TOP_H
#define SHOAL_CLI_TOP_H

int top_command(int argc, char *const *argv);
#endif
