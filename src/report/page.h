#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tutti {

/// One self-contained HTML file that shows `document`: it fetches nothing and may be kept, mailed and printed. Texts
/// may hold anything; they are shown as text. Every part may be absent:
///
///   title, subtitle       texts
///   command               the command line that repeats it, with a button that copies it
///   notes                 warnings, shown on top: texts, or {"text", "level": "warning" or "note"}
///   highlights            a few results in large type: {"label", "value" (text or number), "detail"}
///   figures               {"title", "caption", "svg", "chart"}; see inline_svg.h for what is kept of an SVG. A chart
///   has
///                         "lines" ({"name", "points": [[x, y, half of its interval?]…], "is_dashed"}), "x_label",
///                         "y_label", "x_is_log", "y_is_log", "y_has_zero", "x_marks" (values named on the axis): the
///                         page draws it, with values on hover, and keeps the SVG for paper. In a build without
///                         Chart.js the SVG is what is shown
///   tables                {"id", "title", "caption", "columns", "rows"}; see page_table.h
///   timelines             {"title", "caption", "source", "lanes", "events"}: what timeline.h makes of traces
///   environment           an object, shown as a list of names and values
///   generated             when and by what the page was made: a text for its last line
///
/// Throws Error that names the part whose form is wrong.
std::string render_page(const nlohmann::json& document);

}  // namespace tutti
