#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace tutti {

/// Text as it may stand between tags and inside a quoted attribute.
std::string escape_html(std::string_view text);

/// JSON as it may stand in a <script type="application/json">: plain ASCII in which nothing looks like a tag.
std::string json_for_script(const nlohmann::json& value);

/// A name for id="…" made from a title: "Samples/s by network" is "samples-s-by-network". May be empty.
std::string slug(std::string_view text);

}  // namespace tutti
