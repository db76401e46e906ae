#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace tutti {

/// One message that was timed.
struct LinkSample {
  int64_t bytes = 0;
  double seconds = 0;
};

/// What a message of n bytes costs: startup_s + n * per_byte_s. Fitted to samples, which are kept beside it.
struct LinkCost {
  double startup_s = 0;
  double per_byte_s = 0;
  double residual = 0;  // root mean square of the relative errors of the fit
  std::vector<LinkSample> samples;

  double seconds(int64_t bytes) const { return startup_s + per_byte_s * static_cast<double>(bytes); }
  /// Between the two samples around it rather than on the fitted line; beyond them, on the line's slope.
  double interpolated(int64_t bytes) const;
  bool is_measured() const { return !samples.empty(); }
};

/// What messages between the ranks of a run cost.
struct Links {
  LinkCost all_reduce;
  LinkCost reduce_scatter, all_gather;  // where somebody asked for them; else half an all_reduce each
  LinkCost push_pull;                   // where there are parameter servers: bytes spread evenly over them
};

/// Least squares on relative errors, so that small messages count as much as large ones; neither part falls below zero.
LinkCost fit_link_cost(std::vector<LinkSample> samples);

void to_json(nlohmann::json& json, const LinkCost& cost);
void from_json(const nlohmann::json& json, LinkCost& cost);
void to_json(nlohmann::json& json, const Links& links);
void from_json(const nlohmann::json& json, Links& links);

}  // namespace tutti
