/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probe.h - check whether two threads get twice as much done as one on this machine.
 *
 * If they do not, because of other load or because both processors are hyper-threads of one core,
 * figures for more than one thread say nothing about the subjects.
 */
#ifndef PROBE_H
#define PROBE_H

#include <stdbool.h>

/* Clock reads a second of two threads over those of one; 1 on a single processor. */
double probe(void);

/* Whether a ratio is about two. Much more means that the single thread was disturbed. */
bool probe_scales(double ratio);

#endif
