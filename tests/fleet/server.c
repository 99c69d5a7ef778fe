/* SPDX-License-Identifier: BSD-2-Clause */
#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../stress/check.h"

#define SKIPPED  77
#define PORT_MIN 1024
#define PATIENCE 120000 /* ms, for a server on a busy machine */

void sleep_ms(unsigned ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	nanosleep(&t, NULL);
}

static struct sockaddr_in loopback(unsigned port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return at;
}

/* The first port that the system assigns to programs that request any port. */
static unsigned first_of_any(void)
{
	FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
	unsigned first = 32768;

	if (file == NULL)
		return first;
	if (fscanf(file, "%u", &first) != 1 || first <= PORT_MIN)
		first = 32768;
	(void)fclose(file);
	return first;
}

/*
 * Reserve a name that only one process of the machine can have, for as long as it lives: concurrent
 * tests then do not take the port while its server is down.
 */
static bool reserve(unsigned port)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	(void)snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "weir-test-port-%u", port);
	if (bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0)
		return true;
	close(fd);
	return false;
}

static bool can_be_bound(unsigned port)
{
	struct sockaddr_in at = loopback(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool good = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0;

	close(fd);
	return good;
}

/*
 * Not a port that the system assigns to clients: one of them might have it when the server is
 * restarted.
 */
unsigned free_port(void)
{
	const unsigned end = first_of_any();

	for (;;) {
		unsigned port;

		CHECK(getrandom(&port, sizeof(port), 0) == (ssize_t)sizeof(port));
		port = PORT_MIN + port % (end - PORT_MIN);
		if (can_be_bound(port) && reserve(port))
			return port;
	}
}

static bool answers(unsigned port)
{
	struct sockaddr_in at = loopback(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool up = connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0;

	close(fd);
	return up;
}

static pid_t spawn(char *const argv[], const char *log)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
		execvp(argv[0], argv);
		_exit(127);
	}
	setpgid(pid, pid);
	return pid;
}

int run_program(char *const argv[])
{
	int status;
	pid_t pid = spawn(argv, "/dev/null");

	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void spawn_redis(struct server *s)
{
	char port[16], log[128];
	char *argv[] = {
		"redis-server",
		"--port",
		port,
		"--dir",
		s->folder,
		"--bind",
		"127.0.0.1",
		"--save",
		"",
		"--appendonly",
		s->kind == SERVER_REDIS_DURABLE ? "yes" : "no",
		"--appendfsync",
		"always",
		"--requirepass",
		s->kind == SERVER_REDIS_GUARDED ? "se cret" : "",
		NULL,
	};

	(void)snprintf(port, sizeof(port), "%u", s->port);
	(void)snprintf(log, sizeof(log), "%s/log", s->folder);
	s->pid = spawn(argv, log);
}

static void make_certificates(const struct server *s)
{
	char key[128], cert[128];
	char *argv[] = {
		"openssl",  "req",
		"-x509",    "-newkey",
		"rsa:2048", "-nodes",
		"-days",    "2",
		"-subj",    "/CN=localhost",
		"-addext",  "subjectAltName=IP:127.0.0.1,DNS:localhost",
		"-keyout",  key,
		"-out",     cert,
		NULL,
	};

	(void)snprintf(key, sizeof(key), "%s/key.pem", s->folder);
	(void)snprintf(cert, sizeof(cert), "%s/cert.pem", s->folder);
	CHECK(run_program(argv) == 0);
}

static void spawn_etcd(struct server *s)
{
	const bool tls = s->kind == SERVER_ETCD_TLS;
	char data[128], client[64], peer[64], cluster[80], cert[128], key[128], log[128];
	char *argv[32] = {
		"etcd",   "--data-dir",
		data,     "--listen-client-urls",
		client,   "--advertise-client-urls",
		client,   "--listen-peer-urls",
		peer,     "--initial-advertise-peer-urls",
		peer,     "--initial-cluster",
		cluster,  "--logger",
		"zap",    "--log-outputs",
		"stderr",
	};
	char *const secure[] = {"--cert-file",       cert, "--key-file",        key,
				"--trusted-ca-file", cert, "--client-cert-auth"};

	(void)snprintf(data, sizeof(data), "%s/data", s->folder);
	(void)snprintf(client, sizeof(client), "%s://127.0.0.1:%u", tls ? "https" : "http",
		       s->port);
	(void)snprintf(peer, sizeof(peer), "http://127.0.0.1:%u", s->peer_port);
	(void)snprintf(cluster, sizeof(cluster), "default=%s", peer);
	(void)snprintf(cert, sizeof(cert), "%s/cert.pem", s->folder);
	(void)snprintf(key, sizeof(key), "%s/key.pem", s->folder);
	(void)snprintf(log, sizeof(log), "%s/log", s->folder);
	for (unsigned i = 0; tls && i < 7; i++)
		argv[17 + i] = secure[i];
	if (tls)
		make_certificates(s);
	s->pid = spawn(argv, log);
}

static bool has_ended(struct server *s)
{
	if (s->pid <= 0 || waitpid(s->pid, NULL, WNOHANG) == 0)
		return false;
	s->pid = 0;
	return true;
}

static void spawn_sentinel(struct server *s)
{
	char file[128], log[128];
	char *argv[] = {"redis-server", file, "--sentinel", NULL};

	(void)snprintf(file, sizeof(file), "%s/conf", s->folder);
	(void)snprintf(log, sizeof(log), "%s/log", s->folder);
	s->pid = spawn(argv, log);
}

/* If the server ends at once, another program took the port in the meantime. */
static bool come_up(struct server *s)
{
	if (s->kind >= SERVER_ETCD)
		spawn_etcd(s);
	else if (s->kind == SERVER_SENTINEL)
		spawn_sentinel(s);
	else
		spawn_redis(s);
	for (unsigned i = 0; i < PATIENCE / 10 && !has_ended(s); i++) {
		if (answers(s->port))
			return true;
		sleep_ms(10);
	}
	return false;
}

/* Send a request, and read the beginning of the answer; whole: read until its end. */
static void ask(unsigned port, char text[ANSWER_ROOM], bool whole)
{
	const struct timeval patience = {.tv_sec = PATIENCE / 1000};
	struct sockaddr_in at = loopback(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t size = 0;
	bool good;
	ssize_t n;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	good = connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
	       send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text);
	do {
		n = good ? recv(fd, text + size, ANSWER_ROOM - 1 - size, 0) : 0;
		size += n > 0 ? (size_t)n : 0;
	} while (n > 0 && whole && size < ANSWER_ROOM - 1);
	text[size] = '\0';
	close(fd);
}

bool server_post(const struct server *s, const char *path, const char *body,
		 char answer[ANSWER_ROOM])
{
	char unused[ANSWER_ROOM], *text = answer != NULL ? answer : unused;

	(void)snprintf(text, ANSWER_ROOM,
		       "POST %s HTTP/1.0\r\nContent-Type: application/json\r\n"
		       "Content-Length: %zu\r\n\r\n%s",
		       path, strlen(body), body);
	ask(s->port, text, true);
	return strncmp(text, "HTTP/1.", 7) == 0 && strstr(text, " 200 ") != NULL;
}

bool server_tell(const struct server *s, const char *command)
{
	char text[ANSWER_ROOM];

	(void)snprintf(text, sizeof(text), "%s", command);
	ask(s->port, text, false);
	return strncmp(text, "+OK", 3) == 0;
}

/* Require a password from now on. */
static void guard_etcd(const struct server *s)
{
	static const char *const steps[][2] = {
		{"/v3/auth/user/add", "{\"name\":\"root\",\"password\":\"se cret\"}"},
		{"/v3/auth/role/add", "{\"name\":\"root\"}"},
		{"/v3/auth/user/grant", "{\"user\":\"root\",\"role\":\"root\"}"},
		{"/v3/auth/enable", "{}"},
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		unsigned tries = 0;

		/* A server that listens need not be ready. */
		while (!server_post(s, steps[i][0], steps[i][1], NULL)) {
			CHECK(++tries < PATIENCE / 50);
			sleep_ms(50);
		}
	}
}

static void need(const char *program)
{
	char command[128];
	char *argv[] = {"sh", "-c", command, NULL};

	(void)snprintf(command, sizeof(command), "command -v %s", program);
	if (run_program(argv) != 0) {
		printf("SKIPPED: %s is not installed\n", program);
		exit(SKIPPED);
	}
}

void server_start(struct server *s, enum server_kind kind)
{
	need(kind >= SERVER_ETCD ? "etcd" : "redis-server");
	if (kind == SERVER_ETCD_TLS)
		need("openssl");
	*s = (struct server){.kind = kind};
	(void)snprintf(s->folder, sizeof(s->folder), "/tmp/weir-fleet-XXXXXX");
	CHECK(mkdtemp(s->folder) != NULL);
	for (unsigned i = 0; i < 5; i++) {
		s->port = free_port();
		s->peer_port = free_port();
		if (!come_up(s))
			continue;
		if (kind == SERVER_ETCD_GUARDED)
			guard_etcd(s);
		return;
	}
	fprintf(stderr, "a server does not start: %s/log\n", s->folder);
	abort();
}

void sentinel_start(struct server *s, const struct server *watched)
{
	char path[128];
	FILE *file;

	need("redis-server");
	*s = (struct server){.kind = SERVER_SENTINEL, .port = free_port()};
	(void)snprintf(s->folder, sizeof(s->folder), "/tmp/weir-fleet-XXXXXX");
	CHECK(mkdtemp(s->folder) != NULL);
	(void)snprintf(path, sizeof(path), "%s/conf", s->folder);
	file = fopen(path, "we");
	CHECK(file != NULL);
	/* Five seconds: on a busy machine, a master that is only late must not be taken for gone. */
	fprintf(file,
		"port %u\nbind 127.0.0.1\ndir %s\nsentinel monitor weir 127.0.0.1 %u 1\n"
		"sentinel down-after-milliseconds weir 5000\nsentinel failover-timeout weir 10000\n",
		s->port, s->folder, watched->port);
	CHECK(fclose(file) == 0 && come_up(s));
}

void server_restart(struct server *s)
{
	CHECK(come_up(s));
}

/* With its children: Redis has one that writes its data. */
void server_kill(struct server *s)
{
	if (s->pid > 0) {
		kill(-s->pid, SIGKILL);
		CHECK(waitpid(s->pid, NULL, 0) == s->pid);
	}
	s->pid = 0;
}

/* The server is stopped only when the last of its threads is. */
void server_pause(const struct server *s)
{
	kill(s->pid, SIGSTOP);
	CHECK(waitpid(s->pid, NULL, WUNTRACED) == s->pid);
}

void server_resume(const struct server *s)
{
	kill(s->pid, SIGCONT);
}

void server_end(struct server *s)
{
	char *argv[] = {"rm", "-rf", s->folder, NULL};

	server_kill(s);
	/* Its children end by themselves, and may write until then. */
	for (unsigned tries = 0; run_program(argv) != 0; tries++) {
		CHECK(tries < PATIENCE / 10);
		usleep(10000);
	}
}
