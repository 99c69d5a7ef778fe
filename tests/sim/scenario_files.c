/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario_files.c - errors in scenario files are reported with their line, and no content of a
 * file makes the reader crash.
 */
#include "play.h"
#include "quantity.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* libconfig 1.5 leaks some bytes of a text that it cannot parse. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libconfig.so";
}

/* The lines of a valid scenario; tests replace one of them. */
#define HEAD   "name = \"x\";\n"
#define SERVER "server = ( { name = \"s\"; workers = 2; work = \"10ms\"; } );\n"
#define PHASES "phases = ( { length = \"1s\"; load = 0.5; } );\n"

#define SERVER_WITH(setting)                                                                       \
	HEAD "server = ( { name = \"s\"; work = \"10ms\"; " setting " } );\n" PHASES
#define PHASE_WITH(setting) HEAD SERVER "phases = ( { length = \"1s\"; " setting " } );\n"
#define ROOT_WITH(setting)  HEAD SERVER setting "\n" PHASES

static const struct {
	const char *text, *why;
} bad[] = {
	{"", "f:1: The scenario has no name."},
	{HEAD, "f:1: There is no server."},
	{HEAD SERVER, "f:1: There are no phases."},
	{SERVER PHASES, "f:1: The scenario has no name."},
	{"name = \"x\"\nserver ~ 1;", "f:2: syntax error."},
	{"name = \"x\"; name = \"y\";", "f:1: duplicate setting name."},
	{"name = 7;", "f:1: name is not a text in quotes."},
	{"name = \"1234567890123456789012345678901234567890\";",
	 "f:1: name is longer than 31 bytes."},
	{"name = \"a\\tb\";", "f:1: name contains a tab or a line break."},
	{ROOT_WITH("lenght = 1;"),
	 "f:3: There is no setting \"lenght\" here. There are: name, family, about, rounds, sweep, "
	 "coarse, arrivals, client, server, classes, limiters, phases."},
	{ROOT_WITH("rounds = 0;"), "f:3: rounds is 0, not from 1 to 1e+06."},
	{HEAD SERVER "rounds = 1000000;\nphases = ( { length = \"1000h\"; load = 0.5; } );",
	 "f:4: All rounds together are longer than thirty years."},
	{ROOT_WITH("rounds = 1.5;"), "f:3: rounds is not a whole number."},
	{ROOT_WITH("rounds = \"many\";"), "f:3: rounds is not a number."},
	{ROOT_WITH("sweep = 5;"),
	 "f:3: sweep is not a duration: write \"10ms\", \"2s\", \"1.5h\"."},
	{ROOT_WITH("sweep = \"1us\";"), "f:3: sweep is too short."},
	{ROOT_WITH("arrivals = { process = \"posson\"; };"),
	 "f:3: process must be one of: poisson, regular, batches, onoff, selfsimilar, closed, replay."},
	{ROOT_WITH("arrivals = 7;"), "f:3: arrivals is not a group of settings, as in { a = 1; }."},
	{ROOT_WITH("arrivals = { process = \"batches\"; batch = 0; };"),
	 "f:3: batch is 0, not from 1 to 1e+06."},
	{ROOT_WITH("arrivals = { process = \"onoff\"; on = \"1s\"; };"),
	 "f:3: These arrivals need on and off times above 0."},
	{ROOT_WITH(
		 "arrivals = { process = \"selfsimilar\"; on = \"1s\"; off = \"exponential 1s\"; };"),
	 "f:3: Selfsimilar arrivals use a law of their own: give on and off as mean durations."},
	{ROOT_WITH("arrivals = { process = \"closed\"; };"),
	 "f:3: Closed arrivals need a think time above 0."},
	{ROOT_WITH("arrivals = { process = \"replay\"; };"),
	 "f:3: A replay needs a file of times."},
	{ROOT_WITH("arrivals = { file = \"x\"; };"), "f:3: Only a replay has a file."},
	{ROOT_WITH("arrivals = { process = \"replay\"; file = \"/no/such/file\"; };"),
	 "f:3: /no/such/file: No such file or directory."},
	{ROOT_WITH("client = { timeout = \"0\"; };"), "f:3: timeout is too short."},
	{ROOT_WITH("client = { timeout = \"20000h\"; };"), "f:3: timeout is too long."},
	{ROOT_WITH("client = { retries = 1000; };"), "f:3: retries is 1000, not from 0 to 100."},
	{ROOT_WITH("client = { stops_work = 1; };"), "f:3: stops_work is neither true nor false."},
	{ROOT_WITH("client = { backoff = \"pareto 1s 1\"; };"),
	 "f:3: backoff: alpha is not above 1 and at most 100."},
	{ROOT_WITH("client = { backoff = \"exponential\"; };"),
	 "f:3: backoff: it is not a law: write \"10ms\", \"exponential 10ms\" or \"lognormal 10ms 2\"."},
	{ROOT_WITH("client = { backoff = \"lognormal 1s\"; };"),
	 "f:3: backoff: it has too many numbers, or too few."},
	{ROOT_WITH("client = { backoff = \"bimodal 1s 0.1 x\"; };"),
	 "f:3: backoff: one of its values is not a number."},
	{ROOT_WITH("client = { backoff = 1; };"), "f:3: backoff: it is not a text in quotes."},
	{HEAD "server = 1;\n" PHASES,
	 "f:2: server is not a list of groups, as in ( { ... }, { ... } )."},
	{HEAD "server = ();\n" PHASES, "f:2: server is empty."},
	{HEAD "server = ( { work = \"1ms\"; } );\n" PHASES, "f:2: A station has no name."},
	{HEAD "server = ( { name = \"s\"; } );\n" PHASES,
	 "f:2: Calls of class \"all\" have no work at any station."},
	{HEAD "server = ( { name = \"s\"; work = \"1ms\"; },\n{ name = \"t\"; } );\n" PHASES,
	 "f:3: No call has work at station \"t\"."},
	{HEAD
	 "server = ( { name = \"s\"; work = \"1ms\"; },\n{ name = \"s\"; work = \"1ms\"; } );\n" PHASES,
	 "f:3: There are two stations \"s\"."},
	{SERVER_WITH("workers = 0;"), "f:2: workers is 0, not from 1 to 1e+06."},
	{SERVER_WITH("speed = 0;"), "f:2: speed is 0, not from 0.001 to 1000."},
	{SERVER_WITH("discipline = \"lifo\";"),
	 "f:2: discipline must be one of: fifo, shared, delay."},
	{SERVER_WITH("discipline = \"shared\"; kept = true;"),
	 "f:2: Only a fifo station has workers that can be kept."},
	{SERVER_WITH("discipline = \"delay\"; workers = 2;"),
	 "f:2: A delay station takes no workers, contention, coherency or second_half."},
	{SERVER_WITH("queue = 0;"), "f:2: queue is 0, not from 1 to 1e+06."},
	{SERVER_WITH("discipline = \"shared\"; queue = 5;"),
	 "f:2: Only a fifo station has a queue."},
	{SERVER_WITH("discipline = \"delay\"; newest_first = true;"),
	 "f:2: Only a fifo station has a queue."},
	{SERVER_WITH("pause_every = \"1s\";"), "f:2: pause_every and pause_length go together."},
	{ROOT_WITH("classes = ( { name = \"a\"; share = 0; } );"),
	 "f:3: All classes have a share of 0."},
	{ROOT_WITH("classes = ( { work = { t = \"1ms\"; }; } );"),
	 "f:3: There is no station \"t\"."},
	{ROOT_WITH("classes = ( { work = \"1ms\"; } );"),
	 "f:3: work is not a group of laws by station, as in { cpu = \"1ms\"; }."},
	{ROOT_WITH("classes = ( { cancelled = 0.5; } );"), "f:3: cancelled needs cancel_after."},
	{ROOT_WITH("limiters = ( { limit = \"vega\"; } );"),
	 "f:3: vega: There is no limit \"vega\"; there are "},
	{ROOT_WITH("limiters = ( { count = 200; }, { count = 200; } );"),
	 "f:3: There are more than 256 limiters."},
	{ROOT_WITH("limiters = ( { start = \"1s\"; } );"),
	 "f:3: The first limiters start later than the calls."},
	{HEAD SERVER "phases = ( { load = 0.5; } );\n", "f:3: A phase has no length."},
	{PHASE_WITH(""), "f:3: A phase needs a rate or a load, and not both."},
	{PHASE_WITH("rate = 1; load = 1;"), "f:3: A phase needs a rate or a load, and not both."},
	{PHASE_WITH("rate = -1;"), "f:3: rate is -1, not from 0 to 1e+08."},
	{PHASE_WITH("rate = (1, 2, 3);"),
	 "f:3: rate is neither a number nor a pair, as in (0, 1.5)."},
	{PHASE_WITH("load = 1; clients = 5;"),
	 "f:3: Closed arrivals need clients; others take none."},
	{PHASE_WITH("load = 1; workers = 1.5;"), "f:3: workers is not a whole number."},
	{PHASE_WITH("load = 1; station = \"t\";"), "f:3: There is no station \"t\"."},
	{PHASE_WITH("load = 1; mix = (0);"), "f:3: mix gives every class a share of 0."},
	{PHASE_WITH("load = 1; mix = 0.5;"),
	 "f:3: mix is not a list of up to 6 numbers, as in (0.9, 0.1)."},
	{HEAD SERVER "arrivals = { process = \"closed\"; think = \"1s\"; };\n"
		     "phases = ( { length = \"1s\"; clients = 1; rate = 5; } );\n",
	 "f:4: These arrivals take neither a rate nor a load."},
	{HEAD "server = { name = \"s\"; discipline = \"delay\"; work = \"1s\"; };\n" PHASES,
	 "f:3: A load needs a server of finite capacity: give a rate."},
	{HEAD "server = { name = \"s\"; work = \"1us\"; };\n"
	      "phases = { length = \"1s\"; load = 500; };\n",
	 "f:3: More than 1e+08 calls a second."},
};

Test(scenario_files, errors_have_a_line_and_a_reason)
{
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct scenario scenario;
		char why[300] = "";

		cr_expect_eq(scenario_from_text(&scenario, "f", bad[i].text, why, sizeof(why)),
			     -EINVAL, "%s", bad[i].text);
		/* Compare the beginning only: some end in lists of names that may grow. */
		if (bad[i].why[strlen(bad[i].why) - 1] != '.')
			why[strnlen(bad[i].why, sizeof(why) - 1)] = '\0';
		cr_expect_str_eq(why, bad[i].why);
	}
}

Test(scenario_files, the_reason_fits_any_buffer)
{
	struct scenario scenario;
	char why[64];

	for (size_t size = 1; size < sizeof(why); size++) {
		memset(why, 'x', sizeof(why));
		cr_expect_eq(scenario_from_text(&scenario, "f", HEAD, why, size), -EINVAL);
		cr_expect_lt(strlen(why), size);
	}
}

static char folder[] = "/tmp/scenario-files-XXXXXX";

static void make_folder(void)
{
	cr_assert_not_null(mkdtemp(folder));
}

static const char *path_of(const char *name)
{
	static char path[2][200];
	static unsigned which;

	which = !which;
	snprintf(path[which], sizeof(path[which]), "%s/%s", folder, name);
	return path[which];
}

static void write_file(const char *name, const char *text, size_t size)
{
	FILE *file = fopen(path_of(name), "w");

	cr_assert_not_null(file);
	cr_assert_eq(fwrite(text, 1, size, file), size);
	cr_assert_eq(fclose(file), 0);
}

#define WRITE(name, text) write_file(name, text, strlen(text))

static void remove_folder(void)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	cr_expect_eq(system(command), 0);
}

TestSuite(scenario_folder, .init = make_folder, .fini = remove_folder);

/* The error message without the folder's name. */
static const char *reason(const char *name, int expected)
{
	static char why[600];
	struct scenario scenario;
	const size_t length = strlen(folder) + 1;
	char *at;

	cr_expect_eq(scenario_from_file(&scenario, path_of(name), why, sizeof(why)), expected);
	while ((at = strstr(why, folder)) != NULL)
		memmove(at, at + length, strlen(at + length) + 1);
	return why;
}

Test(scenario_folder, unreadable_files)
{
	cr_expect_str_eq(reason("missing.cfg", -ENOENT), "missing.cfg: No such file or directory.");
	WRITE("empty.cfg", "");
	cr_expect_str_eq(reason("empty.cfg", -ENODATA), "empty.cfg: The file is empty.");
	write_file("zero.cfg", "name = \"x\";\0more", 16);
	cr_expect_str_eq(reason("zero.cfg", -EILSEQ), "zero.cfg: The file is not text.");
	cr_assert_eq(mkdir(path_of("folder.cfg"), 0700), 0);
	cr_expect_str_eq(reason("folder.cfg", -EISDIR), "folder.cfg: Is a directory.");
}

/* A file may include others, found relative to the including file. */
Test(scenario_folder, included_files)
{
	struct scenario scenario;
	char why[300];
	uint64_t digest;

	WRITE("server.cfg", SERVER);
	WRITE("whole.cfg", HEAD "@include \"server.cfg\"\n" PHASES);
	cr_assert_eq(scenario_from_file(&scenario, path_of("whole.cfg"), why, sizeof(why)), 0, "%s",
		     why);
	cr_expect_eq(scenario.stations[0].model.workers, 2);
	digest = scenario.digest;
	scenario_free(&scenario);

	/* The digest depends on the settings, not on the files. */
	cr_assert_eq(scenario_from_text(&scenario, "f", "/* else */" HEAD SERVER PHASES, why,
					sizeof(why)),
		     0);
	cr_expect_eq(scenario.digest, digest);
	WRITE("server.cfg", "server = ( { name = \"s\"; workers = 3; work = \"10ms\"; } );\n");
	cr_assert_eq(scenario_from_file(&scenario, path_of("whole.cfg"), why, sizeof(why)), 0);
	cr_expect_neq(scenario.digest, digest);

	WRITE("server.cfg", "\nserver = ( { name = \"s\"; workers = 0; } );\n");
	cr_expect_str_eq(reason("whole.cfg", -EINVAL),
			 "server.cfg:2: workers is 0, not from 1 to 1e+06.");
	WRITE("server.cfg", "\n\nserver = = 1;\n");
	cr_expect_str_eq(reason("whole.cfg", -EINVAL), "server.cfg:3: syntax error.");
	cr_assert_eq(unlink(path_of("server.cfg")), 0);
	cr_expect_str_eq(reason("whole.cfg", -EINVAL), "whole.cfg:2: cannot open include file.");
	WRITE("whole.cfg", "@include \"whole.cfg\"\n");
	cr_expect_str_eq(reason("whole.cfg", -EINVAL),
			 "whole.cfg:1: include file nesting too deep.");
}

#define REPLAY                                                                                     \
	HEAD SERVER "arrivals = { process = \"replay\"; file = \"times\"; };\n"                    \
		    "phases = ( { length = \"1s\"; }, { length = \"1s\"; } );\n"

Test(scenario_folder, replays)
{
	static struct run_result result;
	struct scenario scenario;
	char why[300];

	WRITE("replay.cfg", REPLAY);
	cr_expect_str_eq(reason("replay.cfg", -EINVAL),
			 "replay.cfg:3: times: No such file or directory.");
	WRITE("times", "");
	cr_expect_str_eq(reason("replay.cfg", -EINVAL),
			 "replay.cfg:3: times:1: The line does not begin with a time in seconds.");
	WRITE("times", "0.1\nsoon\n");
	cr_expect_str_eq(reason("replay.cfg", -EINVAL),
			 "replay.cfg:3: times:2: The line does not begin with a time in seconds.");
	WRITE("times", "0.2\n0.1\n");
	cr_expect_str_eq(
		reason("replay.cfg", -EINVAL),
		"replay.cfg:3: times:2: The time is before the previous one, or too large.");
	WRITE("times", "nan\n");
	cr_expect_str_eq(
		reason("replay.cfg", -EINVAL),
		"replay.cfg:3: times:1: The time is before the previous one, or too large.");

	WRITE("times", "0\n0.25 GET /\n0.25\t7\n1.5e0\n9\n");
	cr_assert_eq(scenario_from_file(&scenario, path_of("replay.cfg"), why, sizeof(why)), 0,
		     "%s", why);
	play(&result, "vegas", &scenario, 1);
	cr_expect_eq(result.phases[0].tally.offered, 3);
	cr_expect_eq(result.phases[1].tally.offered, 1);
	scenario_free(&scenario);
}

/* Change, remove or duplicate one or more bytes of a text. */
static void mutate(char *text, size_t room, struct rng *rng)
{
	static const char likely[] = "(){}[];,=\"'\\\n0129.-+eExhms@#/*&%\x01\xff";
	unsigned times = 1 + (unsigned)(rng_next(rng) % 4);

	while (times-- > 0) {
		size_t length = strlen(text), at = (size_t)(rng_next(rng) % (length + 1));
		size_t some = (size_t)(rng_next(rng) % 20);

		if (at + some > length)
			some = length - at;
		switch (rng_next(rng) % 3) {
		case 0:
			if (at < length)
				text[at] = likely[rng_next(rng) % (sizeof(likely) - 1)];
			break;
		case 1:
			memmove(text + at, text + at + some, length - at - some + 1);
			break;
		default:
			if (length + some < room)
				memmove(text + at + some, text + at, length - at + 1);
			break;
		}
	}
}

/* The reader accepts the text or reports an error. */
Test(scenario_files, random_mutations_do_not_crash)
{
	enum { ROUNDS = 150, ROOM = 8192 };
	static char text[ROOM];
	struct rng rng = {.state = 20};
	struct scenario scenario;
	unsigned read = 0, refused = 0;

	for (unsigned k = 0; scenario_text(k) != NULL; k++)
		for (unsigned i = 0; i < ROUNDS; i++) {
			char why[300] = "";

			snprintf(text, sizeof(text), "%s", scenario_text(k));
			mutate(text, sizeof(text), &rng);
			if (scenario_from_text(&scenario, "f", text, why, sizeof(why)) == 0) {
				scenario_free(&scenario);
				read++;
			} else {
				cr_expect(strncmp(why, "f:", 2) == 0 && strlen(why) > 5, "%s", why);
				refused++;
			}
		}
	cr_expect(read > 500 && refused > 2000, "%u %u", read, refused);
}

Test(scenario_files, built_in_scenarios_have_all_listed_fields)
{
	struct scenario scenario;
	unsigned count = 0;

	for (; scenario_builtin(&scenario, count); count++) {
		bool scored = false;

		cr_expect_str_not_empty(scenario.family, "%s", scenario.name);
		cr_expect_eq(scenario.about[strlen(scenario.about) - 1], '.', "%s", scenario.name);
		for (unsigned i = 0; i < scenario.phase_count; i++)
			scored |= !scenario.phases[i].warm_up;
		cr_expect(scored, "%s", scenario.name);
		scenario_free(&scenario);
	}
	cr_expect_gt(count, 60);
}
