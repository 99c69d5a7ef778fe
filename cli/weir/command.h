/*
 * command.h - what weir can be told to do. Each takes its own arguments, argv[0] being its name
 * for messages, and returns an exit status.
 */
#ifndef COMMAND_H
#define COMMAND_H

#include <argp.h>

int command_fleet(int argc, char **argv);
int command_reap(int argc, char **argv);
int command_set(int argc, char **argv);
int command_stat(int argc, char **argv);
int command_top(int argc, char **argv);

/* Exit status of an option that is wrong, here as in argp. */
#define EXIT_USAGE 64

#endif
