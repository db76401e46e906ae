#include "plan/profile.h"

#include <nlohmann/json.hpp>

namespace tutti {

void to_json(nlohmann::json& json, const Profile& profile) {
  json = {{"forward_s", profile.forward_s}, {"backward_s", profile.backward_s}, {"gradients", nlohmann::json::array()}};
  for (const GradientProfile& gradient : profile.gradients)
    json["gradients"].push_back({{"name", gradient.name},
                                 {"parameter", gradient.parameter},
                                 {"elements", gradient.elements},
                                 {"ready_s", gradient.ready_s},
                                 {"needed_s", gradient.needed_s}});
}

void from_json(const nlohmann::json& json, Profile& profile) {
  profile = {};
  json.at("forward_s").get_to(profile.forward_s);
  json.at("backward_s").get_to(profile.backward_s);
  for (const nlohmann::json& entry : json.at("gradients"))
    profile.gradients.push_back(
        {entry.at("name"), entry.at("parameter"), entry.at("elements"), entry.at("ready_s"), entry.at("needed_s")});
}

}  // namespace tutti
