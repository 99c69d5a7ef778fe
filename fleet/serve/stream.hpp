/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream.hpp - Envoy's rate limit quota service: one stream of reports and assignments per client.
 */
#ifndef WEIR_FLEET_SERVE_STREAM_HPP
#define WEIR_FLEET_SERVE_STREAM_HPP

#include "board.hpp"
#include <envoy/service/rate_limit_quota/v3/rlqs.grpc.pb.h>

namespace weir::serve
{

/* How units per second are put. Envoy knows token buckets only. */
enum class strategy { token_bucket, requests_per_time_unit };

class quota_service final
	: public envoy::service::rate_limit_quota::v3::RateLimitQuotaService::CallbackService
{
public:
	quota_service(board &board, strategy how) : board_(board), how_(how)
	{
	}

	grpc::ServerBidiReactor<envoy::service::rate_limit_quota::v3::RateLimitQuotaUsageReports,
				envoy::service::rate_limit_quota::v3::RateLimitQuotaResponse>
		*StreamRateLimitQuotas(grpc::CallbackServerContext *context) override;

private:
	board &board_;
	strategy how_;
};

} // namespace weir::serve

#endif
