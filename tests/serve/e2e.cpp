/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * e2e CASE SERVE: weir-fleet-serve over a store, with clients that behave as Envoy does. While a
 * case runs, what clients and members may use is added up all the time, and never exceeds the
 * capacity.
 *
 * Assignments are short, and messages may take long: the machine may have much else to do.
 */
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/fleet.h>

#include "../stress/check.h"
#include "envoy.hpp"

extern "C" {
#include "../fleet/server.h"
}

namespace
{

constexpr weir_dur LEASE = 12 * WEIR_S;
const char *const LIMIT = "alpha";
const bucket ALPHA = {{"name", LIMIT}};

const char *serve_path;
std::string store_address;

/* Wait for something; a hanging test is ended by its timeout. */
void wait_for(const std::function<bool()> &happened)
{
	while (!happened())
		std::this_thread::sleep_for(milliseconds(5));
}

/* The daemon. */
class daemon_process
{
public:
	explicit daemon_process(std::vector<std::string> more = {})
	{
		std::vector<std::string> args = {
			serve_path, "--address",  store_address, "--listen", "127.0.0.1:0",
			"--lease",  "12",         "--learning",  "12",       "--ttl",
			"2",        "--delivery", "3",           "--label",  "serve"};

		args.insert(args.end(), more.begin(), more.end());
		start(args);
	}

	~daemon_process()
	{
		if (pid_ > 0)
			CHECK(terminate() == 0);
		fclose(out_);
	}
	daemon_process(const daemon_process &) = delete;
	daemon_process &operator=(const daemon_process &) = delete;

	/* The end of the next line of its output that begins so. */
	std::string line(const std::string &begin)
	{
		char text[256];

		while (fgets(text, sizeof(text), out_) != nullptr)
			if (std::strncmp(text, begin.c_str(), begin.size()) == 0)
				return std::string(text + begin.size(),
						   std::strcspn(text + begin.size(), "\n"));
		return {};
	}

	const std::string &address() const
	{
		return address_;
	}
	unsigned metrics_port() const
	{
		return metrics_port_;
	}

	void signal(int which) const
	{
		CHECK(kill(pid_, which) == 0);
	}

	/* Returns its exit status, or -1 if a signal has ended it. */
	int wait()
	{
		int status;

		CHECK(waitpid(pid_, &status, 0) == pid_);
		pid_ = 0;
		return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	}

	int terminate()
	{
		signal(SIGTERM);
		return wait();
	}

private:
	void start(std::vector<std::string> &args)
	{
		std::vector<char *> argv;
		bool metrics = false;
		int ends[2];

		for (std::string &arg : args) {
			metrics |= arg == "--metrics";
			argv.push_back(arg.data());
		}
		argv.push_back(nullptr);
		CHECK(pipe(ends) == 0);
		pid_ = fork();
		CHECK(pid_ >= 0);
		if (pid_ == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			dup2(ends[1], STDOUT_FILENO);
			close(ends[0]);
			close(ends[1]);
			execv(argv[0], argv.data());
			_exit(127);
		}
		close(ends[1]);
		out_ = fdopen(ends[0], "r");
		CHECK(out_ != nullptr);
		if (metrics)
			metrics_port_ = static_cast<unsigned>(std::stoul(line("metrics on port ")));
		address_ = line("listening on ");
		CHECK(!address_.empty());
	}

	pid_t pid_ = 0;
	FILE *out_ = nullptr;
	std::string address_{};
	unsigned metrics_port_ = 0;
};

/* The library's side: makes limits, and takes part in them. */
class member
{
public:
	member()
	{
		weir_fleet_config config;

		weir_fleet_config_init(&config);
		config.address = store_address.c_str();
		config.lease = LEASE;
		config.learning = LEASE;
		config.label = "member";
		CHECK(weir_fleet_open(&config, &fleet_, nullptr, 0) == 0);
	}
	~member()
	{
		weir_fleet_close(fleet_);
	}
	member(const member &) = delete;
	member &operator=(const member &) = delete;

	void make(const char *name, uint64_t capacity)
	{
		weir_fleet_limit limit;

		weir_fleet_limit_init(&limit);
		limit.capacity = capacity;
		CHECK(weir_fleet_configure(weir_fleet_store(fleet_), name, &limit, nullptr, 0) ==
		      0);
	}

	weir_fleet_limit look(const char *name)
	{
		weir_fleet_limit limit;

		weir_fleet_limit_init(&limit);
		CHECK(weir_fleet_inspect(weir_fleet_store(fleet_), name, &limit, nullptr,
					 nullptr) == 0);
		return limit;
	}

	void join(const char *name, uint64_t wants)
	{
		weir_share_config config;
		weir_share *joined;

		weir_share_config_init(&config);
		config.name = name;
		CHECK(weir_share_join(fleet_, &config, &joined, nullptr, 0) == 0);
		CHECK(weir_share_demand_set(joined, wants) == 0);
		share_ = joined;
	}

	uint64_t units() const
	{
		weir_share *share = share_;

		return share != nullptr ? weir_share_units(share) : 0;
	}

	void leave()
	{
		weir_share_leave(share_.exchange(nullptr));
	}

	weir_fleet *fleet() const
	{
		return fleet_;
	}

private:
	weir_fleet *fleet_ = nullptr;
	std::atomic<weir_share *> share_{nullptr};
};

/* Adds up what may be used of a limit, all the time. Clients that are gone count on. */
class auditor
{
public:
	auditor(const member &with, uint64_t capacity) : member_(with), capacity_(capacity)
	{
		thread_ = std::thread([this] {
			for (; !ends_; std::this_thread::sleep_for(milliseconds(3)))
				audit();
		});
	}
	~auditor()
	{
		ends_ = true;
		thread_.join();
	}
	auditor(const auditor &) = delete;
	auditor &operator=(const auditor &) = delete;

	void watch(const std::shared_ptr<envoy_client> &client)
	{
		const std::lock_guard<std::mutex> held(lock_);

		clients_.push_back(client);
	}

	uint64_t sum()
	{
		const std::lock_guard<std::mutex> held(lock_);
		uint64_t sum = member_.units();

		for (const auto &client : clients_)
			sum += client->units(LIMIT);
		return sum;
	}

private:
	/* Summands are read one after the other: what has moved in between is counted again. */
	void audit()
	{
		for (unsigned i = 0; sum() > capacity_; i++)
			CHECK(i < 5);
	}

	const member &member_;
	const uint64_t capacity_;
	std::mutex lock_{};
	std::vector<std::shared_ptr<envoy_client>> clients_{};
	std::atomic<bool> ends_{false};
	std::thread thread_{};
};

std::shared_ptr<envoy_client> client_of(const daemon_process &daemon, auditor *watched = nullptr)
{
	auto client = std::make_shared<envoy_client>(daemon.address());

	if (watched != nullptr)
		watched->watch(client);
	return client;
}

/* One has a demand, which is followed; another one comes, and is killed; a member takes part. */
void sharing()
{
	member member;
	member.make(LIMIT, 500);

	daemon_process daemon;
	auditor auditor(member, 500);
	const auto first = client_of(daemon, &auditor), second = client_of(daemon, &auditor);

	first->want(ALPHA, 100);
	wait_for([&] { return first->units(LIMIT) >= 100; });
	CHECK(first->about(ALPHA).by_bucket);
	first->want(ALPHA, 300);
	wait_for([&] { return first->units(LIMIT) >= 300; });
	first->want(ALPHA, 1000);
	wait_for([&] { return first->units(LIMIT) == 500; });

	/* The second one's buckets are two. */
	second->want({{"name", LIMIT}, {"group", "a"}}, 1000);
	wait_for([&] { return second->units(LIMIT) == 250 && first->units(LIMIT) == 250; });
	second->want({{"name", LIMIT}, {"group", "b"}}, 50);
	wait_for([&] { return second->units(LIMIT) >= 270 && first->units(LIMIT) <= 230; });

	member.join(LIMIT, 1000);
	wait_for([&] { return member.units() == 250 && auditor.sum() >= 490; });

	second->die();
	wait_for([&] { return first->units(LIMIT) == 250; });
	CHECK(member.units() == 250);
	member.leave();
	wait_for([&] { return first->units(LIMIT) == 500; });
	first->want(ALPHA, 0);
	wait_for([&] { return first->units(LIMIT) < 400; });
}

quota::RateLimitQuotaUsageReports report_of(const bucket &id, int64_t seconds = 1)
{
	quota::RateLimitQuotaUsageReports reports;
	auto *usage = reports.add_bucket_quota_usages();

	reports.set_domain("test");
	usage->mutable_bucket_id()->mutable_bucket()->insert(id.begin(), id.end());
	usage->mutable_time_elapsed()->set_seconds(seconds);
	usage->set_num_requests_allowed(10);
	return reports;
}

/* The report ends the stream. */
void refused(const daemon_process &daemon, const quota::RateLimitQuotaUsageReports &reports)
{
	envoy_client client(daemon.address());

	CHECK(client.send(reports));
	wait_for([&] { return client.is_over(); });
	CHECK(client.status().error_code() == grpc::StatusCode::INVALID_ARGUMENT);
}

/* The bucket is abandoned, and the stream goes on. */
void abandoned(const daemon_process &daemon, const bucket &id)
{
	envoy_client client(daemon.address());

	CHECK(client.send(report_of(id)));
	wait_for([&] { return client.about(id).abandoned; });
	client.want(ALPHA, 1);
	wait_for([&] { return client.units(LIMIT) >= 1; });
	CHECK(!client.is_over());
}

void malformed(const daemon_process &daemon)
{
	quota::RateLimitQuotaUsageReports reports;

	reports = report_of(ALPHA);
	reports.clear_domain();
	refused(daemon, reports);
	refused(daemon, report_of({}));
	refused(daemon, report_of(ALPHA, -1));
	refused(daemon, report_of(ALPHA, INT64_MAX));
	reports = report_of(ALPHA);
	reports.mutable_bucket_quota_usages(0)->mutable_time_elapsed()->set_nanos(1000000000);
	refused(daemon, reports);
	reports.mutable_bucket_quota_usages(0)->mutable_time_elapsed()->set_nanos(-1);
	refused(daemon, reports);
}

/* A stream that reads nothing is ended, once nothing more can be sent to it. */
void unread(const daemon_process &daemon)
{
	grpc::ChannelArguments arguments;

	/* As much as is sent to it anyway stays as little as it is at first. */
	arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
	const auto stub = quota::RateLimitQuotaService::NewStub(grpc::CreateCustomChannel(
		daemon.address(), grpc::InsecureChannelCredentials(), arguments));
	grpc::ClientContext context;
	const auto stream = stub->StreamRateLimitQuotas(&context);
	quota::RateLimitQuotaUsageReports reports;
	quota::RateLimitQuotaResponse response;

	for (unsigned i = 0; i < 256; i++)
		reports.MergeFrom(report_of({{"name", LIMIT},
					     {"i", std::to_string(i)},
					     {"text", std::string(250, 'x')}}));
	while (stream->Write(reports))
		std::this_thread::sleep_for(milliseconds(100));
	while (stream->Read(&response))
		;
	CHECK(!stream->Finish().ok());
}

void hostile()
{
	member member;
	member.make(LIMIT, 500);

	daemon_process daemon;
	auditor auditor(member, 500);
	const auto bystander = client_of(daemon, &auditor);
	quota::RateLimitQuotaUsageReports huge = report_of(ALPHA);

	bystander->want(ALPHA, 100);
	malformed(daemon);
	abandoned(daemon, {{"name", "unknown"}});
	abandoned(daemon, {{"other", LIMIT}});
	abandoned(daemon, {{"name", "no/name"}});
	abandoned(daemon, {{"name", std::string("alpha\0x", 7)}});
	abandoned(daemon, {{"name", LIMIT}, {"long", std::string(5000, 'x')}});
	abandoned(daemon, {{"name", LIMIT}, {"empty", ""}});
	abandoned(daemon, {{"name", std::string(300, 'x')}});

	/* As many requests as there can be, again and again: the bystander has its part of 500. */
	huge.mutable_bucket_quota_usages(0)->set_num_requests_allowed(UINT64_MAX);
	huge.mutable_bucket_quota_usages(0)->set_num_requests_denied(UINT64_MAX);
	huge.mutable_bucket_quota_usages(0)->mutable_time_elapsed()->set_seconds(0);
	const auto greedy = client_of(daemon, &auditor);
	wait_for([&] {
		CHECK(greedy->send(huge));
		return greedy->units(LIMIT) > 300 && bystander->units(LIMIT) >= 90;
	});
	unread(daemon);
	wait_for([&] { return bystander->units(LIMIT) >= 90; });
	CHECK(!bystander->is_over());
}

/* Streams, and buckets of a stream, beyond what is allowed. */
void bounds()
{
	member member;
	member.make(LIMIT, 500);

	daemon_process daemon({"--streams", "2", "--buckets", "3", "--strategy",
			       "requests_per_time_unit", "--bucket-limit", "limit"});
	const auto first = client_of(daemon), second = client_of(daemon);
	unsigned told_of = 0, left_out = 0;

	for (unsigned i = 0; i < 5; i++)
		first->want({{"limit", LIMIT}, {"i", std::to_string(i)}}, 10);
	second->want({{"limit", LIMIT}}, 10);
	wait_for([&] { return second->about({{"limit", LIMIT}}).units >= 10; });
	CHECK(!second->about({{"limit", LIMIT}}).by_bucket);
	{
		envoy_client third(daemon.address());

		wait_for([&] { return third.is_over(); });
		CHECK(third.status().error_code() == grpc::StatusCode::UNAVAILABLE);
	}
	wait_for([&] {
		told_of = left_out = 0;
		for (unsigned i = 0; i < 5; i++) {
			const told t = first->about({{"limit", LIMIT}, {"i", std::to_string(i)}});

			told_of += t.units >= 10;
			left_out += t.abandoned;
		}
		return told_of == 3 && left_out == 2;
	});
}

/* The store is stopped for longer than a lease, and comes back. */
void outage(const server &store)
{
	member member;
	member.make(LIMIT, 500);

	daemon_process daemon;
	auditor auditor(member, 500);
	const auto client = client_of(daemon, &auditor);
	unsigned before;

	client->want(ALPHA, 1000);
	wait_for([&] { return client->units(LIMIT) == 500; });
	server_pause(&store);
	/* Assignments are renewed for a while, and end with the lease: then all is denied. */
	before = client->about(ALPHA).messages;
	wait_for([&] { return client->about(ALPHA).messages > before; });
	wait_for([&] { return client->about(ALPHA).units == 0; });
	server_resume(&store);
	wait_for([&] { return client->units(LIMIT) == 500; });
	/* A daemon that is killed has lent what its lease still covers. */
	daemon.signal(SIGKILL);
	CHECK(daemon.wait() == -1);
	member.join(LIMIT, 1000);
	wait_for([&] { return member.units() == 500; });
}

std::string scrape(unsigned port, const char *request)
{
	sockaddr_in at{};
	std::string answer;
	char piece[4096];
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	at.sin_family = AF_INET;
	at.sin_port = htons(static_cast<uint16_t>(port));
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(fd >= 0);
	if (connect(fd, reinterpret_cast<const sockaddr *>(&at), sizeof(at)) == 0 &&
	    write(fd, request, strlen(request)) > 0)
		for (ssize_t n; (n = read(fd, piece, sizeof(piece))) > 0;)
			answer.append(piece, static_cast<size_t>(n));
	close(fd);
	return answer;
}

constexpr char GET[] = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

void metrics_of(const daemon_process &daemon)
{
	const unsigned port = daemon.metrics_port();
	const std::string text = scrape(port, GET);

	for (const char *line :
	     {"HTTP/1.1 200", "weir_serve_streams 1\n", "weir_serve_buckets{limit=\"alpha\"} 1\n",
	      "weir_share_units{limit=\"alpha\"} ", "weir_serve_lent{limit=\"alpha\"} ",
	      "weir_fleet_store_up 1\n", "text/plain"})
		CHECK(text.find(line) != std::string::npos);
	CHECK(scrape(port, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
			   "Accept: application/openmetrics-text\r\n\r\n")
		      .find("# EOF\n") != std::string::npos);
	CHECK(scrape(port, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		      .find("HTTP/1.1 404") == 0);
	CHECK(scrape(port, "POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
			   "Content-Length: 3\r\n\r\nabc")
		      .find("HTTP/1.1 405") == 0);
	(void)scrape(port, "nonsense\r\n\r\n");
	CHECK(scrape(port, GET).find("HTTP/1.1 200") == 0);
}

/* SIGTERM ends streams, and the share is left when what was lent has ended, with scrapes going on. */
void ending()
{
	member member;
	member.make(LIMIT, 500);

	daemon_process daemon({"--metrics", "127.0.0.1:0"});
	auditor auditor(member, 500);
	const auto client = client_of(daemon, &auditor);
	std::atomic<bool> ends{false};
	std::vector<std::thread> scrapers;

	client->want(ALPHA, 1000);
	wait_for([&] { return client->units(LIMIT) == 500; });
	metrics_of(daemon);
	member.join(LIMIT, 1000);
	for (unsigned i = 0; i < 3; i++)
		scrapers.emplace_back([&] {
			while (!ends)
				(void)scrape(daemon.metrics_port(), GET);
		});
	std::this_thread::sleep_for(milliseconds(50));
	CHECK(daemon.terminate() == 0);
	CHECK(member.look(LIMIT).members == 1);
	ends = true;
	for (std::thread &scraper : scrapers)
		scraper.join();
	wait_for([&] { return client->is_over(); });
	CHECK(client->status().error_code() == grpc::StatusCode::UNAVAILABLE);
	wait_for([&] { return member.units() == 500; });
}

/* Certificates in a folder: an authority, what it has signed for both sides, and another one. */
class certificates
{
public:
	certificates()
	{
		char name[] = "/tmp/weir-serve-XXXXXX";

		CHECK(mkdtemp(name) != nullptr);
		folder_ = name;
		run("cd " + folder_ +
		    " && for ca in ours theirs; do openssl req -x509 -newkey rsa:2048 -nodes "
		    "-days 2 -subj /CN=$ca -keyout $ca.key -out $ca.pem; done "
		    "&& for who in server client stranger; do ca=ours; "
		    "[ $who = stranger ] && ca=theirs; "
		    "printf 'subjectAltName=IP:127.0.0.1' >ext; "
		    "openssl req -newkey rsa:2048 -nodes -subj /CN=$who -keyout $who.key "
		    "-out $who.csr && openssl x509 -req -in $who.csr -CA $ca.pem -CAkey $ca.key "
		    "-CAcreateserial -days 2 -extfile ext -out $who.pem || exit 1; done");
	}
	~certificates()
	{
		run("rm -rf " + folder_);
	}
	certificates(const certificates &) = delete;
	certificates &operator=(const certificates &) = delete;

	std::string file(const std::string &name) const
	{
		return folder_ + "/" + name;
	}

	/* What a client trusts, and which certificate it has; "": none. */
	std::shared_ptr<grpc::ChannelCredentials> client(const std::string &trusts,
							 const std::string &has) const
	{
		grpc::SslCredentialsOptions options;

		options.pem_root_certs = text(trusts + ".pem");
		if (!has.empty()) {
			options.pem_private_key = text(has + ".key");
			options.pem_cert_chain = text(has + ".pem");
		}
		return grpc::SslCredentials(options);
	}

private:
	static void run(const std::string &command)
	{
		CHECK(std::system(("(" + command + ") >/dev/null 2>&1").c_str()) == 0);
	}

	std::string text(const std::string &name) const
	{
		std::ifstream in(file(name));
		std::ostringstream all;

		CHECK(in && all << in.rdbuf());
		return all.str();
	}

	std::string folder_{};
};

void let_in(const daemon_process &daemon,
	    const std::shared_ptr<grpc::ChannelCredentials> &credentials)
{
	envoy_client client(daemon.address(), credentials);

	client.want(ALPHA, 10);
	wait_for([&] { return client.units(LIMIT) >= 10; });
}

void kept_out(const daemon_process &daemon,
	      const std::shared_ptr<grpc::ChannelCredentials> &credentials)
{
	envoy_client client(daemon.address(), credentials);

	wait_for([&] { return client.is_over(); });
	CHECK(client.status().error_code() == grpc::StatusCode::UNAVAILABLE);
	CHECK(client.about(ALPHA).messages == 0);
}

void tls()
{
	const certificates files;
	member member;
	member.make(LIMIT, 500);

	daemon_process daemon({"--cert", files.file("server.pem"), "--key",
			       files.file("server.key"), "--ca", files.file("ours.pem")});
	daemon_process open(
		{"--cert", files.file("server.pem"), "--key", files.file("server.key")});

	kept_out(daemon, grpc::InsecureChannelCredentials());
	kept_out(daemon, files.client("ours", ""));
	kept_out(daemon, files.client("ours", "stranger"));
	kept_out(daemon, files.client("theirs", "client"));
	let_in(daemon, files.client("ours", "client"));
	let_in(open, files.client("ours", ""));
	kept_out(open, files.client("theirs", ""));
}

} // namespace

int main(int argc, char **argv)
{
	struct server redis;
	const std::string which = argc == 3 ? argv[1] : "";

	CHECK(argc == 3);
	signal(SIGPIPE, SIG_IGN);
	serve_path = argv[2];
	store_address = "shm:/serve-" + std::to_string(getpid());
	if (which == "outage") {
		server_start(&redis, SERVER_REDIS);
		store_address = "redis://127.0.0.1:" + std::to_string(redis.port);
		outage(redis);
		server_end(&redis);
	} else if (which == "sharing") {
		sharing();
	} else if (which == "hostile") {
		hostile();
	} else if (which == "bounds") {
		bounds();
	} else if (which == "tls") {
		tls();
	} else {
		CHECK(which == "ending");
		ending();
	}
	unlink(("/dev/shm/" + store_address.substr(5)).c_str());
	printf("%s works\n", which.c_str());
	return 0;
}
