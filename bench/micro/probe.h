/*
 * probe.h - whether two threads get twice as much done here as one.
 *
 * Where they do not (a neighbour on the machine, two hyper-threads of one core)
 * figures for more than one thread say nothing about what is measured.
 */
#ifndef PROBE_H
#define PROBE_H

#include <stdbool.h>

/* Clock reads a second of two threads over those of one; 1 where there is one processor. */
double probe(void);

/* Whether that is about two. Much more says that it was the one thread which was disturbed. */
bool probe_scales(double ratio);

#endif
