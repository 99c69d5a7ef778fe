/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Criterion starts each test as a process of its own, by executing the program again. The kernel
 * cannot execute a program that was built for another processor, so here the emulator is executed
 * with it. This is linked to the tests of a cross build, where it comes before the C library's.
 */
#include <stddef.h>
#include <unistd.h>

#define MAX_ARGS 32

int execve(const char *path, char *const argv[], char *const envp[])
{
	static const char *const emulator[] = {EMULATOR};
	char *args[MAX_ARGS + 1] = {NULL};
	size_t count = 0;

	for (size_t i = 0; i < sizeof(emulator) / sizeof(emulator[0]); i++)
		args[count++] = (char *)emulator[i];
	args[count++] = (char *)path;
	for (size_t i = 1; argv[0] != NULL && argv[i] != NULL && count < MAX_ARGS; i++)
		args[count++] = argv[i];
	return execvpe(emulator[0], args, envp);
}
