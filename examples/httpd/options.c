/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of the example server.
 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { EXIT_USAGE = 2 };

static const char usage[] =
	"Usage: %s [OPTION]...\n"
	"Serve sales reports from a generated SQLite database on a loopback port.\n"
	"\n"
	"  --port N         listen on 127.0.0.1:N (default 0: any free port, printed)\n"
	"  --limit LIMIT    none, or a limit with parameters, such as vegas:alpha=log10:2,max=200\n"
	"  --rows N         rows of the database (default 400000)\n"
	"  --pool N         worker threads; 0: with libmicrohttpd one per connection,\n"
	"                   with libevent 64 (default 0)\n"
	"  --queue N        requests that may wait for a permit (default 0)\n"
	"  --wait MS        the longest wait of a request (default 100)\n"
	"  --stats FILE     write a line of tab-separated numbers every 100 ms\n"
	"  --help           print this\n"
	"\n"
	"GET /report?shop=N is the work that is limited; without shop each request takes\n"
	"the next. GET /stats shows the limiter, and GET /metrics shows it\n"
	"to Prometheus.\n";

static _Noreturn __attribute__((format(printf, 1, 2))) void refuse(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs(program_invocation_short_name, stderr);
	fputs(": ", stderr);
	vfprintf(stderr, format, args);
	fputs("\n", stderr);
	va_end(args);
	exit(EXIT_USAGE);
}

static unsigned parse_number(const char *option, const char *text, unsigned min, unsigned max)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || value < min || value > max)
		refuse("--%s needs a number from %u to %u, not \"%s\"", option, min, max, text);
	return (unsigned)value;
}

static void parse_one(int code, struct options *options)
{
	switch (code) {
	case 'p':
		options->port = (uint16_t)parse_number("port", optarg, 0, UINT16_MAX);
		break;
	case 'l':
		options->limit = optarg;
		break;
	case 'r':
		options->rows = parse_number("rows", optarg, 1, 10000000);
		break;
	case 't':
		options->pool = parse_number("pool", optarg, 0, 1000);
		break;
	case 'q':
		options->queue = parse_number("queue", optarg, 0, 65535);
		break;
	case 'w':
		options->wait_ms = parse_number("wait", optarg, 0, 60000);
		break;
	case 's':
		options->stats = optarg;
		break;
	case 'h':
		printf(usage, program_invocation_short_name);
		exit(EXIT_SUCCESS);
	default:
		exit(EXIT_USAGE); /* getopt_long() has printed an error */
	}
}

void options_parse(int argc, char **argv, struct options *options)
{
	static const struct option known[] = {
		{"port", required_argument, NULL, 'p'},
		{"limit", required_argument, NULL, 'l'},
		{"pool", required_argument, NULL, 't'},
		{"rows", required_argument, NULL, 'r'},
		{"queue", required_argument, NULL, 'q'},
		{"wait", required_argument, NULL, 'w'},
		{"stats", required_argument, NULL, 's'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int code;

	*options = (struct options){.limit = "elastic", .rows = 400000, .wait_ms = 100};
	while ((code = getopt_long(argc, argv, "", known, NULL)) != -1)
		parse_one(code, options);
	if (optind < argc)
		refuse("unexpected argument \"%s\"", argv[optind]);
}
