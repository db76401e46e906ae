#pragma once

#include <string_view>

namespace tutti {

// The files of web/, compiled in by cmake/embed_page.cmake.
extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;
/// Chart.js, which defines `Chart`; "" in a build without it.
extern const std::string_view kChartLibrary;

}  // namespace tutti
