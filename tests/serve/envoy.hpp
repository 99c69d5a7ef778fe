/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * envoy.hpp - a client of weir-fleet-serve that behaves as Envoy does: it subscribes to buckets,
 * reports what came to them, and applies assignments until they end. Each client has a ledger of
 * what it may use, which the auditor adds up.
 */
#ifndef WEIR_TESTS_SERVE_ENVOY_HPP
#define WEIR_TESTS_SERVE_ENVOY_HPP

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/grpcpp.h>

#include <envoy/service/rate_limit_quota/v3/rlqs.grpc.pb.h>

namespace quota = envoy::service::rate_limit_quota::v3;

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using bucket = std::map<std::string, std::string>;

/* What a client was told last about a bucket. */
struct told {
	uint64_t units = 0;
	steady_clock::time_point until{};
	bool abandoned = false;
	unsigned messages = 0;
	bool by_bucket = false; /* by a token bucket, as Envoy needs it */
};

class envoy_client
{
public:
	/* Connects, and reads what is sent until the stream ends. */
	envoy_client(const std::string &address,
		     const std::shared_ptr<grpc::ChannelCredentials> &credentials =
			     grpc::InsecureChannelCredentials());
	~envoy_client(); /* ends the stream in order */
	envoy_client(const envoy_client &) = delete;
	envoy_client &operator=(const envoy_client &) = delete;

	/* From now on, that many requests come to the bucket each second: reported every 200 ms. */
	void want(const bucket &id, uint64_t rate);

	/* Send one report as it is. Returns whether it could be sent. */
	bool send(const quota::RateLimitQuotaUsageReports &reports);

	/* The stream breaks off. What was assigned may be in use until it ends. */
	void die();

	/* Units that it may use now, of all its buckets whose "name" is the limit. */
	uint64_t units(const std::string &limit) const;
	told about(const bucket &id) const;
	bool is_over() const
	{
		return over_;
	}
	grpc::Status status(); /* once it is over */

private:
	void read();
	void apply(const quota::RateLimitQuotaResponse::BucketAction &action);
	void report();

	grpc::ClientContext context_{};
	std::unique_ptr<quota::RateLimitQuotaService::Stub> stub_;
	std::unique_ptr<grpc::ClientReaderWriter<quota::RateLimitQuotaUsageReports,
						 quota::RateLimitQuotaResponse>>
		stream_;
	mutable std::mutex lock_{};
	std::mutex write_lock_{};
	std::map<bucket, uint64_t> rates_{};
	std::map<bucket, told> told_{};
	std::atomic<bool> over_{false}, ends_{false};
	bool joined_ = false;
	std::thread reader_{}, reporter_{};
};

#endif
