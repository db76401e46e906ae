#pragma once

#include <string_view>

namespace tutti {

// The page of `tutti watch`, of files in web/.
extern const std::string_view kWatchPage;
extern const std::string_view kWatchStyle;
extern const std::string_view kWatchScript;

}  // namespace tutti
