#include "tutti/profile.h"

#include <nlohmann/json.hpp>

namespace tutti {

void to_json(nlohmann::json& json, const Profile& profile) {
  json = {{"forward_s", profile.forward_s},
          {"backward_s", profile.backward_s},
          {"update_s", profile.update_s},
          {"rest_s", profile.rest_s},
          {"gradients", nlohmann::json::array()}};
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
  profile.update_s = json.value("update_s", 0.0);
  profile.rest_s = json.value("rest_s", 0.0);
  for (const nlohmann::json& entry : json.at("gradients"))
    profile.gradients.push_back(
        {entry.at("name"), entry.at("parameter"), entry.at("elements"), entry.at("ready_s"), entry.at("needed_s")});
}

}  // namespace tutti
