/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table.h - a store in memory for simulations of very many members: it finds a row by its key at
 * once, where the library's own copies all rows at each commit. It is not for threads.
 */
#ifndef TABLE_H
#define TABLE_H

#include <weir/store.h>

/* A store that is known to have forgotten nothing. Close it by weir_store_close(). */
struct weir_store *table_open(const struct weir_clock *clock);

#endif
