#include "plan/links.h"

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
  if (!links.push_pull.samples.empty()) json["push_pull"] = links.push_pull;
}
void from_json(const nlohmann::json& json, Links& links) {
  links = {};
  json.at("all_reduce").get_to(links.all_reduce);
  if (json.contains("push_pull")) json.at("push_pull").get_to(links.push_pull);
}

}  // namespace tutti
