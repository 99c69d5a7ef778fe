/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * commands.h - the commands of weir-fleet-bench. Each prints a table.
 */
#ifndef COMMANDS_H
#define COMMANDS_H

/* cost ROUNDS TIMES: the time of an admission with a share and without. */
int cost_command(int argc, char **argv);

/* load ADDRESS SECONDS MEMBERS...: the load that members put on a store. */
int load_command(int argc, char **argv);

/* settle --members N --store ADDRESS: how soon all members have what they want. */
int settle_command(int argc, char **argv);

/*
 * simulate MEMBERS|REGIONSxMEMBERS|aMEMBERS...: the same in simulated time, in one store, in regions,
 * or with an allocator.
 */
int simulate_command(int argc, char **argv);

#endif
