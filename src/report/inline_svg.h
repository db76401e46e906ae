#pragma once

#include <string>
#include <string_view>

namespace tutti {

/// A figure's SVG as part of an HTML page: only shapes and text are kept (no scripts, handlers, links, styles sheets or
/// anything from elsewhere), ids get `prefix` so that several figures live side by side, and it scales with the page.
/// `label` is what a screen reader says. Empty if there is no <svg> in the text.
std::string inline_svg(std::string_view svg, const std::string& prefix, std::string_view label);

}  // namespace tutti
