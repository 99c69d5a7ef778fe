/*
 * command.h - what weir-sim can be told to do. Each takes its own arguments, argv[0] being its
 * name for messages, and returns an exit status.
 */
#ifndef COMMAND_H
#define COMMAND_H

#include <argp.h>

int command_list(int argc, char **argv);
int command_replay(int argc, char **argv);
int command_run(int argc, char **argv);
int command_score(int argc, char **argv);
int command_sweep(int argc, char **argv);
int command_plot(int argc, char **argv);

/* Exit status of an option that is wrong, here as in argp. */
#define EXIT_USAGE 64

#endif
