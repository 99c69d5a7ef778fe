/* SPDX-License-Identifier: BSD-2-Clause */
/* use.cpp - the same program, for a C++ compiler. */
#include "use.c"
