/* use.cpp - the same program, for a C++ compiler. */
#include "use.c"
