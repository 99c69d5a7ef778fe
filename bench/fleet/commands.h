/*
 * commands.h - what weir-crowd does; each prints a table.
 */
#ifndef COMMANDS_H
#define COMMANDS_H

/* cost ROUNDS TIMES: an admission, with a share and without. */
int cost_command(int argc, char **argv);

/* load ADDRESS SECONDS MEMBERS...: what so many members ask of a store. */
int load_command(int argc, char **argv);

/* simulate MEMBERS|REGIONSxMEMBERS...: the same in simulated time, in one store or in regions. */
int simulate_command(int argc, char **argv);

#endif
