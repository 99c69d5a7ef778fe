/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * guard.cpp - weir/weir.hpp as a program uses it: in C++17 and C++20, with exceptions and without.
 * Nothing here depends on timing.
 */
#include <weir/weir.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace std::chrono_literals;

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__,          \
				     #condition);                                                  \
			std::abort();                                                              \
		}                                                                                  \
	} while (0)

/* What must not compile. */
template <class Deadline, class = void> struct can_wait : std::false_type {
};
template <class Deadline>
struct can_wait<Deadline,
		std::void_t<decltype(std::declval<weir::limiter &>().acquire(Deadline()))>>
	: std::true_type {
};
template <class Config, class = void> struct can_init : std::false_type {
};
template <class Config>
struct can_init<Config, std::void_t<decltype(weir_config_init(std::declval<Config *>()))>>
	: std::true_type {
};

static_assert(!std::is_copy_constructible_v<weir::permit>);
static_assert(!std::is_copy_assignable_v<weir::permit>);
static_assert(std::is_nothrow_move_constructible_v<weir::permit>);
static_assert(std::is_nothrow_move_assignable_v<weir::permit>);
static_assert(!std::is_copy_constructible_v<weir::limiter>);
static_assert(!std::is_copy_assignable_v<weir::limiter>);
static_assert(std::is_nothrow_move_constructible_v<weir::limiter>);
static_assert(std::is_nothrow_move_assignable_v<weir::limiter>);
static_assert(std::is_nothrow_copy_constructible_v<weir::config>);
static_assert(std::is_trivially_copyable_v<weir::limiter_ref>);
static_assert(std::is_convertible_v<weir::limiter &, weir::limiter_ref>);
static_assert(!std::is_constructible_v<weir::limiter_ref, weir::limiter>, "it would dangle");
static_assert(!std::is_assignable_v<weir::limiter &, weir::limiter_ref>);
static_assert(!std::is_assignable_v<weir::limiter_base &, weir::limiter_ref>, "nor by its base");
static_assert(noexcept(std::declval<weir::limiter &>().try_acquire()));
static_assert(noexcept(
	std::declval<weir::limiter &>().acquire(std::declval<std::chrono::milliseconds>())));
static_assert(can_wait<std::chrono::steady_clock::time_point>());
static_assert(can_wait<std::chrono::duration<double>>());
static_assert(!can_wait<std::chrono::system_clock::time_point>(), "a clock that may be set");
static_assert(!can_wait<weir_time>(), "a number has no unit");
static_assert(can_init<weir_config>());
static_assert(!can_init<weir::config>(), "it is initialised, and of another size");

/* Durations: the unit is the type's, and nothing wraps. */
using days = std::chrono::duration<int, std::ratio<86400>>;
using picoseconds = std::chrono::duration<std::int64_t, std::pico>;
static_assert(weir::dur(1500us) == 1500000);
static_assert(weir::dur(picoseconds(2500)) == 2);
static_assert(weir::dur(std::chrono::duration<double>(0.25)) == 250000000);
static_assert(weir::dur(std::chrono::duration<std::uint8_t, std::milli>(255)) == 255000000);
static_assert(weir::dur(0s) == 0 && weir::dur(-1s) == 0);
static_assert(weir::dur(std::chrono::hours::min()) == 0);
static_assert(weir::dur(std::chrono::nanoseconds::max()) == WEIR_FOREVER);
static_assert(weir::dur(std::chrono::hours::max()) == WEIR_FOREVER);
static_assert(weir::dur(days(106750)) == std::uint64_t{106750} * 86400 * 1000000000);
static_assert(weir::dur(days(106751)) == WEIR_FOREVER, "292 years");
static_assert(weir::dur(std::chrono::duration<double, std::pico>(1e30)) == WEIR_FOREVER);

/* weir::partition has a field for each of these. */
static void know_all_fields_of_a_partition()
{
	const weir_partition plain = {};
	const auto &[name, share, cap, max, reject_delay] = plain;

	CHECK(!name && share == 0 && cap == 0 && max == 0 && reject_delay == 0);
}

static weir::config settings(unsigned limit, unsigned queue = 0)
{
	weir::config config;

	CHECK(config.set_limit("settable:initial=" + std::to_string(limit)));
	config.queue = queue;
	return config;
}

static void release_once()
{
	weir::limiter limiter(settings(1));
	void (weir::permit::*const outcomes[])() noexcept = {
		&weir::permit::success,   &weir::permit::ignore,    &weir::permit::dropped,
		&weir::permit::timed_out, &weir::permit::cancelled, &weir::permit::failed,
	};

	for (auto first : outcomes) {
		weir::permit permit = limiter.try_acquire();

		CHECK(permit && permit.error() == 0);
		CHECK(permit.token().cost == 1);
		CHECK(limiter.inflight() == 1);
		(permit.*first)();
		CHECK(!permit && limiter.inflight() == 0);
		for (auto again : outcomes)
			(permit.*again)();
		permit.release(WEIR_SUCCESS);
		CHECK(!permit.detach());
	}

	const weir_snapshot seen = limiter.snapshot();

	CHECK(seen.succeeded == 1 && seen.ignored == 1 && seen.dropped == 1);
	CHECK(seen.timed_out == 1 && seen.cancelled == 1 && seen.failed == 1);
	CHECK(seen.admitted == 6 && seen.inflight == 0 && seen.double_released == 0);
}

static void ignore_what_was_forgotten()
{
	weir::limiter limiter(settings(1));

	{
		const weir::permit permit = limiter.try_acquire();
		CHECK(permit);
	}
	CHECK(limiter.inflight() == 0);
	CHECK(limiter.snapshot().ignored == 1);
}

static void say_why_not()
{
	weir::limiter limiter(settings(1, 1));
	weir_call call = {};

	call.partition = 7;
	CHECK(limiter.try_acquire(call).error() == -EINVAL);
	CHECK(limiter.acquire(1h, call).error() == -EINVAL);

	const weir::permit held = limiter.try_acquire();
	const weir::permit refused = limiter.try_acquire();

	CHECK(held && !refused && refused.error() == -EAGAIN);
	CHECK(refused.token().state == 0);
	CHECK(limiter.acquire(0s).error() == -ETIMEDOUT);
	CHECK(limiter.acquire(-1s).error() == -ETIMEDOUT);
	CHECK(limiter.acquire(std::chrono::steady_clock::now()).error() == -ETIMEDOUT);
	CHECK(limiter.acquire(1ms).error() == -ETIMEDOUT);
	CHECK(limiter.snapshot().abandoned == 4);

	const weir::permit nothing;

	CHECK(!nothing && nothing.error() == 0);
}

static void be_empty()
{
	const weir::limiter limiter;
	const weir::limiter_ref view(limiter);

	CHECK(!limiter && !limiter.get() && !view);
	CHECK(limiter.try_acquire().error() == -EINVAL);
	CHECK(view.try_acquire(weir_call()).error() == -EINVAL);
	CHECK(limiter.acquire(1h).error() == -EINVAL);
	CHECK(limiter.limit() == 0 && limiter.inflight() == 0 && limiter.waiting() == 0 &&
	      limiter.queue_size() == 0);
	CHECK(limiter.partition_find("live") == 0 && !limiter.partition_snapshot(0));
	CHECK(limiter.snapshot().admitted == 0);
	CHECK(limiter.snapshot().size == sizeof(weir_snapshot));
}

static void weigh_a_call()
{
	weir::limiter limiter(settings(3));
	weir_call call = {};

	call.cost = 2;

	weir::permit permit = limiter.try_acquire(call);

	CHECK(permit && permit.token().cost == 2 && limiter.inflight() == 2);
	CHECK(!limiter.try_acquire(call));
	permit.queued(1000); /* no limit here uses it */
	CHECK(permit.detach() && permit && limiter.inflight() == 2);
	permit.success();
	CHECK(limiter.inflight() == 0);
	CHECK(limiter.snapshot().detached == 1 && limiter.snapshot().succeeded == 1);
}

static void move_permits()
{
	weir::limiter limiter(settings(10));
	weir::permit a = limiter.try_acquire();
	weir::permit b = std::move(a);

	CHECK(!a && b && limiter.inflight() == 1); // NOLINT(bugprone-use-after-move)
	a.success();
	CHECK(limiter.inflight() == 1);

	weir::permit &self = b;

	b = std::move(self);
	CHECK(b && limiter.inflight() == 1);

	a = limiter.try_acquire();
	b = std::move(a);
	CHECK(!a && b && limiter.inflight() == 1); // NOLINT(bugprone-use-after-move)
	CHECK(limiter.snapshot().ignored == 1);    /* the token that b held before */

	b = weir::permit();
	CHECK(!b && limiter.inflight() == 0);

	a = limiter.try_acquire();
	std::swap(a, b);
	CHECK(!a && b);
	std::thread([other = std::move(b)]() mutable { other.success(); }).join();
	CHECK(limiter.inflight() == 0 && limiter.snapshot().succeeded == 1);
	CHECK(limiter.snapshot().double_released == 0);
}

static void keep_permits()
{
	weir::limiter limiter(settings(100));
	std::vector<weir::permit> permits;

	for (unsigned i = 0; i < 100; i++)
		permits.push_back(limiter.try_acquire());
	CHECK(limiter.inflight() == 100);
	permits.push_back(limiter.try_acquire());
	CHECK(!permits.back());
	permits.pop_back();
	permits.erase(permits.begin() + 10, permits.begin() + 20);
	CHECK(limiter.inflight() == 90);
	std::sort(permits.begin(), permits.end(), [](const auto &x, const auto &y) {
		return x.token().inflight > y.token().inflight;
	});
	CHECK(permits.front().token().inflight == 100 && permits.back().token().inflight == 1);
	permits.resize(40);
	CHECK(limiter.inflight() == 40);

	std::vector<weir::permit> others = std::move(permits);

	for (weir::permit &permit : others)
		permit.success();
	others.clear();
	CHECK(limiter.inflight() == 0);
	CHECK(limiter.snapshot().succeeded == 40 && limiter.snapshot().ignored == 60);
	CHECK(limiter.snapshot().double_released == 0);
}

static void move_limiters()
{
	weir::limiter first(settings(1));
	const weir::limiter_ref view = first;
	weir_limiter *const raw = first.get();
	weir::permit permit = first.try_acquire();
	weir::limiter second(std::move(first));

	CHECK(!first && second.get() == raw &&
	      view.get() == raw); // NOLINT(bugprone-use-after-move)
	permit.success();
	CHECK(view.snapshot().succeeded == 1);

	weir::limiter &self = second;

	second = std::move(self);
	CHECK(second.get() == raw && second.limit() == 1);

	second = weir::limiter(settings(2)); /* ends the first one */
	CHECK(second.limit() == 2);

	std::vector<weir::limiter> limiters;

	for (unsigned i = 1; i <= 20; i++)
		limiters.emplace_back(settings(i));
	for (unsigned i = 1; i <= 20; i++)
		CHECK(limiters[i - 1].limit() == i);
}

static void view_what_C_owns()
{
	weir_limiter *raw = nullptr;

	CHECK(weir_limiter_create(nullptr, &raw) == 0);

	const weir::limiter_ref view(raw);
	const weir::limiter_ref copy = view;
	weir::permit permit = copy.try_acquire();

	CHECK(permit && view.inflight() == 1 && weir_inflight(raw) == 1);
	permit.success();
	weir_limiter_destroy(raw);
}

static void refuse_bad_configurations()
{
	weir::config config;

	config.queue = 70000;

	const weir::status checked = config.check();
	weir::status how;
	const weir::limiter none(config, &how);

	CHECK(!checked && checked.error == -EINVAL);
	CHECK(std::strcmp(checked.why, "queue is 70000, above 65535.") == 0);
	CHECK(!none && !how && how.error == -EINVAL && std::strcmp(how.why, checked.why) == 0);
	CHECK(!weir::limiter(config));

	config.queue = 7;
	CHECK(config.set_limit("fixed:limit=3"));

	const weir::status text = config.set_limit("vegas:alpha=many");

	CHECK(!text && text.error == -EINVAL && std::strlen(text.why) > 0);
	CHECK(config.limit == &weir_fixed); /* unchanged */
	CHECK(config.check());

	const weir::limiter good(config, &how);

	CHECK(good && how && how.error == 0 && how.why[0] == '\0');
	CHECK(good.limit() == 3);

	config.set_partitions({{"twice"}, {"twice"}});
	CHECK(!config.check() && std::strstr(config.check().why, "twice"));
	config.set_partitions(std::vector<weir::partition>(WEIR_PARTITIONS_MAX + 1));
	CHECK(!config.check());
	config.set_partitions({});
	CHECK(config.check());
}

static void keep_what_a_configuration_points_to()
{
	auto original = std::make_unique<weir::config>(settings(7));

	original->set_partitions({{"a name that is too long to lie within a string", 0.5},
				  {"live", 0.25, 0.75, 3, 20ms}});

	weir::config copy = *original;
	weir::config assigned;

	assigned = copy;
	CHECK(original->set_limit("settable:initial=9"));
	original->set_partitions({{"batch"}});

	const weir::limiter changed(*original);

	original.reset();
	copy = weir::config(); /* the last but one that shares it */
	copy = std::move(assigned);

	const weir::limiter kept(copy);
	const weir::limiter from_rest(assigned); // NOLINT(bugprone-use-after-move)

	CHECK(changed.limit() == 9 && changed.partition_find("batch") == 1);
	CHECK(kept.limit() == 7 && from_rest.limit() == 7);
	CHECK(kept.partition_find("live") == 2 && kept.partition_find("batch") == 0);
	CHECK(copy.partitions[1].reject_delay == 20000000 && copy.partitions[1].cap == 0.75);
	CHECK(copy.partitions[1].max == 3);

	weir_call live = {};

	live.partition = kept.partition_find("live");

	const weir::permit permit = kept.try_acquire(live);
	const auto seen = kept.partition_snapshot(live.partition);

	CHECK(permit && permit.token().partition == 2);
	CHECK(seen && seen->inflight == 1 && std::strcmp(seen->name, "live") == 0);
	CHECK(seen->share == 0.25);
	CHECK(!kept.partition_snapshot(3));
}

static void take_fields_as_in_C()
{
	const weir_vegas_config vegas = [] {
		weir_vegas_config own = {};

		own.initial = 33;
		return own;
	}();
	weir::config config;

	config.limit = &weir_vegas;
	config.limit_config = &vegas;
	config.window_min = weir::dur(250ms);
	CHECK(weir_config_check(&config, nullptr, 0) == 0);
	CHECK(weir::limiter(config).limit() == 33);
}

static void read_the_clock_of_the_limiter()
{
	const auto before = std::chrono::steady_clock::now();
	const weir_time now = weir_now();
	const auto after = std::chrono::steady_clock::now();

	CHECK(weir::dur(before.time_since_epoch()) <= now);
	CHECK(now <= weir::dur(after.time_since_epoch()));
}

/* A thread waits by wait() until this one releases its permit. */
static void wait_with(const std::function<weir::permit(weir::limiter_ref)> &wait)
{
	weir::limiter limiter(settings(1, 1));
	weir::permit held = limiter.try_acquire();
	std::thread waiter([&] {
		weir::permit permit = wait(limiter);

		CHECK(permit && permit.error() == 0);
		permit.success();
	});

	while (limiter.waiting() == 0)
		std::this_thread::yield();
	held.success();
	waiter.join();
	CHECK(limiter.snapshot().succeeded == 2);
}

static void wait_for_a_permit()
{
	using clock = std::chrono::steady_clock;

	wait_with([](weir::limiter_ref l) { return l.acquire(1h); });
	wait_with([](weir::limiter_ref l) { return l.acquire(std::chrono::hours::max()); });
	wait_with([](weir::limiter_ref l) { return l.acquire(std::chrono::nanoseconds::max()); });
	wait_with([](weir::limiter_ref l) { return l.acquire(clock::now() + 1h); });
	wait_with([](weir::limiter_ref l) { return l.acquire(clock::time_point::max()); });
	wait_with([](weir::limiter_ref l) { return l.acquire(1h, weir_call()); });
}

static void hand_tokens_over()
{
	weir::limiter limiter(settings(1, 1));
	weir::permit held = limiter.try_acquire();
	weir_wait place = {};
	weir_token token = {};

	CHECK(weir_enqueue(limiter.get(), nullptr, nullptr, &place) == 0);
	CHECK(weir_poll(limiter.get(), &place, &token) == -EAGAIN);
	held.success();
	CHECK(weir_poll(limiter.get(), &place, &token) == 0);

	weir::permit adopted = weir::permit::adopt(limiter.get(), token);

	CHECK(adopted && adopted.error() == 0 && token.state == 0);

	weir_token taken = adopted.take();

	CHECK(!adopted && limiter.inflight() == 1);
	adopted.success();
	CHECK(limiter.inflight() == 1);
	weir_release(limiter.get(), &taken, WEIR_SUCCESS);
	CHECK(limiter.inflight() == 0 && limiter.snapshot().double_released == 0);
}

static void run_calls()
{
	weir::limiter limiter(settings(1));
	const auto classify = [](const std::string &answer) {
		return answer == "busy" ? WEIR_DROPPED : WEIR_SUCCESS;
	};
	const auto answer = [&](const char *text) {
		return [&limiter, text] {
			CHECK(limiter.inflight() == 1);
			return std::string(text);
		};
	};

	CHECK(limiter.try_acquire().run(answer("done"), classify) == "done");
	CHECK(limiter.try_acquire().run(answer("busy"), classify) == "busy");
	CHECK(limiter.acquire(0s).run([] { return WEIR_TIMED_OUT; }) == WEIR_TIMED_OUT);

	const auto only_moves = limiter.try_acquire().run([] { return std::make_unique<int>(7); },
							  [](const std::unique_ptr<int> &seven) {
								  return *seven == 7
										 ? WEIR_CANCELLED
										 : WEIR_FAILED;
							  });

	CHECK(only_moves && **only_moves == 7);

	const auto in_an_optional = limiter.try_acquire().run(
		[] { return std::optional<int>(); },
		[](std::optional<int> none) { return none ? WEIR_FAILED : WEIR_IGNORE; });

	CHECK(in_an_optional && !*in_an_optional);

	const weir_snapshot seen = limiter.snapshot();

	CHECK(seen.inflight == 0 && seen.succeeded == 1 && seen.dropped == 1 && seen.failed == 0);
	CHECK(seen.timed_out == 1 && seen.cancelled == 1 && seen.ignored == 1);

	weir::permit held = limiter.try_acquire();
	weir::permit refused = limiter.try_acquire();
	bool ran = false;

	CHECK(!refused.run([&] {
		ran = true;
		return WEIR_SUCCESS;
	}));
	CHECK(!ran && refused.error() == -EAGAIN);
	CHECK(held.run([] { return WEIR_SUCCESS; }) && !held);
}

static void notify_an_observer()
{
	unsigned windows = 0;
	weir::observer count([&windows](const weir_report &report) {
		CHECK(report.window.count == 1);
		windows++;
	});
	weir::config config = settings(1);

	config.windowing = WEIR_WINDOW_SAMPLE;
	config.observer = &count;

	weir::limiter limiter(config);

	while (windows < 3)
		limiter.try_acquire().success();
	CHECK(limiter.snapshot().windows == 3);
}

static bool visit_place(void *arg, const weir_outstanding *token)
{
	static_cast<std::vector<const void *> *>(arg)->push_back(token->place);
	return true;
}

/* A leak is reported on its own line of the program, not on one line of the header. */
static void record_the_callers_place()
{
	weir::config config = settings(10, 1);
	std::vector<const void *> places;

	config.track = 10;

	const weir::limiter limiter(config);
	const weir::permit a = limiter.try_acquire();
	const weir::permit b = limiter.try_acquire();
	const weir::permit c = limiter.try_acquire(weir_call());
	const weir::permit d = limiter.try_acquire(weir_call());
	const weir::permit e = limiter.acquire(1h);
	const weir::permit f = limiter.acquire(1h);
	const weir::permit g = limiter.acquire(std::chrono::steady_clock::time_point());
	const weir::permit h = limiter.acquire(std::chrono::steady_clock::time_point());

	CHECK(weir_outstanding_visit(limiter.get(), visit_place, &places) == 8);
	std::sort(places.begin(), places.end());
	CHECK(std::unique(places.begin(), places.end()) == places.end());
}

#ifdef __cpp_exceptions

struct oops {
};

/*
 * A permit released by a destructor while an exception passes is released; its outcome is a guess.
 */
struct works_when_destroyed {
	weir::limiter_ref limiter;

	~works_when_destroyed()
	{
		const weir::permit permit = limiter.try_acquire();
		CHECK(permit);
	}
};

template <class Work> static void must_throw(Work work)
{
	bool thrown = false;

	try {
		work();
	} catch (const oops &) {
		thrown = true;
	}
	CHECK(thrown);
}

static void survive_exceptions()
{
	weir::limiter limiter(settings(1));

	must_throw([&] {
		const weir::permit permit = limiter.try_acquire();
		throw oops();
	});
	CHECK(limiter.inflight() == 0 && limiter.snapshot().failed == 1);

	must_throw([&] {
		weir::permit permit = limiter.try_acquire();
		permit.dropped();
		throw oops();
	});
	CHECK(limiter.snapshot().failed == 1 && limiter.snapshot().dropped == 1);

	must_throw([&] {
		auto owned = std::make_unique<weir::permit>(limiter.try_acquire());
		throw oops();
	});
	CHECK(limiter.inflight() == 0 && limiter.snapshot().failed == 2);

	{
		const weir::permit permit = limiter.try_acquire();

		must_throw([] { throw oops(); }); /* and the exception was caught */
	}
	CHECK(limiter.snapshot().failed == 2 && limiter.snapshot().ignored == 1);

	must_throw([&] {
		const works_when_destroyed later{limiter};
		throw oops();
	});
	CHECK(limiter.inflight() == 0);
	CHECK(limiter.snapshot().failed + limiter.snapshot().ignored == 4);
	CHECK(limiter.snapshot().double_released == 0);
}

static void run_what_throws()
{
	weir::limiter limiter(settings(1));
	weir::permit permit = limiter.try_acquire();

	must_throw([&] { (void)permit.run([]() -> weir_outcome { throw oops(); }); });
	CHECK(!permit && limiter.inflight() == 0); /* released before the end of permit */
	CHECK(limiter.snapshot().failed == 1);

	must_throw([&] {
		(void)limiter.try_acquire().run([] { return 1; },
						[](int) -> weir_outcome { throw oops(); });
	});
	CHECK(limiter.inflight() == 0 && limiter.snapshot().failed == 2);
}

#else

static void survive_exceptions()
{
}

static void run_what_throws()
{
}

#endif

/* A child holds nothing of its parent's limiter and permits, and destroys them without harm. */
static bool be_a_child(const std::string &name, weir::limiter parents, weir::permit permit)
{
	weir::limiter own;

	if (parents.try_acquire() || parents.try_acquire().error() != -ESTALE)
		return false;
	permit.success();
	own = weir::limiter::shm_open(name.c_str(), 0600, settings(1), 4);
	return own && own.inflight() == 1 && own.try_acquire().error() == -EAGAIN;
}

static void share_with_a_child()
{
	const std::string name = "/weir-guard-" + std::to_string(getpid());
	weir::status how;
	int ended = -1;

	CHECK(!weir::limiter::shm_open_observer(name.c_str(), &how) && how.error == -ENOENT);
	CHECK(std::strstr(how.why, name.c_str()) != nullptr);
	CHECK(!weir::limiter::shm_open("/a/b", 0600, settings(1), 4, &how) && !how);
	{
		weir::limiter shared = weir::limiter::shm_open(name.c_str(), 0600, settings(1), 4,
							       &how);
		weir::permit permit = shared.try_acquire();

		CHECK(how && shared && permit);

		const pid_t child = fork();

		if (child == 0)
			_exit(be_a_child(name, std::move(shared), std::move(permit)) ? 0 : 1);
		CHECK(waitpid(child, &ended, 0) == child && ended == 0);
		CHECK(shared.inflight() == 1);

		const weir::limiter seen = weir::limiter::shm_open_observer(name.c_str(), &how);

		CHECK(how && seen.inflight() == 1 && seen.try_acquire().error() == -EACCES);
		CHECK(weir_shm_reap(shared.get(), nullptr) == 0);
	}
	CHECK(weir::limiter::shm_open_observer(name.c_str()).inflight() == 0);
	CHECK(weir::limiter::shm_open_observer(name.c_str(), &how, WEIR_SHM_ANY_USER) && how);
	CHECK(shm_unlink(name.c_str()) == 0);
}

int main()
{
	know_all_fields_of_a_partition();
	release_once();
	ignore_what_was_forgotten();
	say_why_not();
	be_empty();
	weigh_a_call();
	move_permits();
	keep_permits();
	move_limiters();
	view_what_C_owns();
	refuse_bad_configurations();
	keep_what_a_configuration_points_to();
	take_fields_as_in_C();
	read_the_clock_of_the_limiter();
	wait_for_a_permit();
	hand_tokens_over();
	run_calls();
	notify_an_observer();
	record_the_callers_place();
	survive_exceptions();
	run_what_throws();
	share_with_a_child();
	std::puts("guarded");
}
