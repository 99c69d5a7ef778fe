/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints a run. Source lines come from addr2line, which is asked once for all steps.
 */

#include "tests/interleave/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STEPS 4096 /* the last ones are kept */
#define NAMES 128
#define LINES 256

static struct step steps[STEPS];
static unsigned long total;

static struct {
	uintptr_t address;
	char text[40];
} names[NAMES];
static unsigned named;

static struct {
	const void *pc;
	char text[64];
} lines[LINES];
static unsigned known;

void trace_reset(void)
{
	total = 0;
}

void trace_add(const struct step *step)
{
	steps[total++ % STEPS] = *step;
}

void trace_name(const volatile void *address, const char *text)
{
	unsigned i = 0;

	while (i < named && names[i].address != (uintptr_t)address)
		i++;
	if (i == NAMES)
		return;
	names[i].address = (uintptr_t)address;
	snprintf(names[i].text, sizeof(names[i].text), "%s", text);
	if (i == named)
		named++;
}

static const char *name_of(const volatile void *address, char *text, size_t size)
{
	for (unsigned i = 0; i < named; i++)
		if (names[i].address == (uintptr_t)address)
			return names[i].text;
	snprintf(text, size, "%#" PRIxPTR, (uintptr_t)address);
	return text;
}

static const char *line_of(const void *pc)
{
	for (unsigned i = 0; i < known; i++)
		if (lines[i].pc == pc)
			return lines[i].text;
	return "?";
}

/* addr2line gives a line for each address; the last two parts of a path are enough here. */
static void look_up(const struct step *from, unsigned count)
{
	char command[LINES * 20 + 64], text[512];
	size_t length;
	FILE *pipe;

	known = 0;
	for (unsigned i = 0; i < count && known < LINES; i++)
		if (from[i].pc != NULL && strcmp(line_of(from[i].pc), "?") == 0) {
			lines[known].pc = from[i].pc;
			snprintf(lines[known++].text, sizeof(lines[0].text), "-");
		}
	length = (size_t)snprintf(command, sizeof(command), "addr2line -s -e /proc/%ld/exe",
				  syscall(SYS_getpid)); /* a scene may define getpid() */
	/* The return address belongs to the line after the call if that was the line's last. */
	for (unsigned i = 0; i < known; i++)
		length += (size_t)snprintf(command + length, sizeof(command) - length,
					   " %#" PRIxPTR, (uintptr_t)lines[i].pc - 1);
	pipe = popen(command, "r");
	for (unsigned i = 0; pipe != NULL && i < known; i++) {
		if (fgets(text, sizeof(text), pipe) == NULL)
			break;
		text[strcspn(text, " \n")] = '\0';
		snprintf(lines[i].text, sizeof(lines[i].text), "%.60s", text);
	}
	if (pipe != NULL)
		pclose(pipe);
}

static void print_step(unsigned long number, const struct step *step)
{
	char address[32], text[160];
	int length;

	length = snprintf(text, sizeof(text), "%s", step->what);
	if (step->address != NULL)
		length += snprintf(text + length, sizeof(text) - (size_t)length, " %s %" PRIx64,
				   name_of(step->address, address, sizeof(address)), step->before);
	if (step->writes)
		length += snprintf(text + length, sizeof(text) - (size_t)length, " -> %" PRIx64,
				   step->after);
	if (step->note != NULL)
		snprintf(text + length, sizeof(text) - (size_t)length, " (%s)", step->note);
	printf("%5lu  %*s%-*s %s\n", number, (int)step->thread * 30, "",
	       (int)(3 - (step->thread < 3 ? step->thread : 2)) * 30, text, line_of(step->pc));
}

void trace_print(void)
{
	static struct step last[STEPS];
	const unsigned long first = total > STEPS ? total - STEPS : 0;
	unsigned count = 0;

	for (unsigned long i = first; i < total; i++)
		last[count++] = steps[i % STEPS];
	look_up(last, count);
	printf("       %-30s%-30s%-30s\n", "thread 0", "thread 1", "thread 2");
	for (unsigned i = 0; i < count; i++)
		print_step(first + i, &last[i]);
}
