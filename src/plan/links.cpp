#include "tutti/links.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace tutti {

LinkCost fit_link_cost(std::vector<LinkSample> samples) {
  // Minimize the sum of ((a + b n - t) / t)²: linear in a and b, with weights w = 1 / t².
  double w = 0, wn = 0, wnn = 0, wt = 0, wnt = 0;
  for (const LinkSample& sample : samples) {
    const double n = static_cast<double>(sample.bytes), t = std::max(sample.seconds, 1e-9), weight = 1 / (t * t);
    w += weight;
    wn += weight * n;
    wnn += weight * n * n;
    wt += weight * t;
    wnt += weight * n * t;
  }
  LinkCost cost;
  const double determinant = w * wnn - wn * wn;
  if (determinant > 0) {
    cost.startup_s = (wt * wnn - wnt * wn) / determinant;
    cost.per_byte_s = (w * wnt - wn * wt) / determinant;
  }
  if (cost.startup_s < 0 || determinant <= 0) {
    cost.startup_s = 0;
    cost.per_byte_s = wnn > 0 ? wnt / wnn : 0;
  }
  if (cost.per_byte_s < 0) {
    cost.per_byte_s = 0;
    cost.startup_s = w > 0 ? wt / w : 0;
  }
  double squares = 0;
  for (const LinkSample& sample : samples) {
    const double error = cost.seconds(sample.bytes) / std::max(sample.seconds, 1e-9) - 1;
    squares += error * error;
  }
  if (!samples.empty()) cost.residual = std::sqrt(squares / static_cast<double>(samples.size()));
  cost.samples = std::move(samples);
  return cost;
}

double LinkCost::interpolated(int64_t bytes) const {
  if (samples.size() < 2) return seconds(bytes);
  const auto after =
      std::find_if(samples.begin(), samples.end(), [&](const LinkSample& s) { return s.bytes >= bytes; });
  if (after == samples.end())
    return samples.back().seconds + per_byte_s * static_cast<double>(bytes - samples.back().bytes);
  if (after == samples.begin()) return after->seconds;  // hardly anything but start-up
  const LinkSample& before = *(after - 1);
  const double part = static_cast<double>(bytes - before.bytes) / static_cast<double>(after->bytes - before.bytes);
  return before.seconds + part * (after->seconds - before.seconds);
}

void to_json(nlohmann::json& json, const LinkCost& cost) {
  json = {{"startup_s", cost.startup_s}, {"per_byte_s", cost.per_byte_s}, {"residual", cost.residual}};
  json["samples"] = nlohmann::json::array();
  for (const LinkSample& sample : cost.samples)
    json["samples"].push_back({{"bytes", sample.bytes}, {"seconds", sample.seconds}});
}

void from_json(const nlohmann::json& json, LinkCost& cost) {
  cost = {};
  json.at("startup_s").get_to(cost.startup_s);
  json.at("per_byte_s").get_to(cost.per_byte_s);
  json.at("residual").get_to(cost.residual);
  for (const nlohmann::json& sample : json.at("samples"))
    cost.samples.push_back({sample.at("bytes"), sample.at("seconds")});
}

void to_json(nlohmann::json& json, const Links& links) {
  json = {{"all_reduce", links.all_reduce}};
  if (links.reduce_scatter.is_measured()) json["reduce_scatter"] = links.reduce_scatter;
  if (links.all_gather.is_measured()) json["all_gather"] = links.all_gather;
  if (links.push_pull.is_measured()) json["push_pull"] = links.push_pull;
}
void from_json(const nlohmann::json& json, Links& links) {
  links = {};
  json.at("all_reduce").get_to(links.all_reduce);
  if (json.contains("reduce_scatter")) json.at("reduce_scatter").get_to(links.reduce_scatter);
  if (json.contains("all_gather")) json.at("all_gather").get_to(links.all_gather);
  if (json.contains("push_pull")) json.at("push_pull").get_to(links.push_pull);
}

}  // namespace tutti
