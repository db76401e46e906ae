#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tutti {

/// One of a page document's tables as HTML; `id` names it on the page. The page's script makes it sortable and
/// filterable; without the script it is a plain table.
///
/// A column is {"key", "label", "kind", "digits" (after the point), "bar"}. Kinds:
///   text
///   number       as it is, or with `digits`
///   percent      a fraction: 0.93 is shown as 93 %
///   duration     in seconds; shown as 12.3 ms, 4.56 s, 1:02:03
///   plusminus    {"value", "deviation"}
/// `bar` draws a bar behind the numbers, as long as the value is large; percent and plusminus have one unless it is
/// false. A row has a value per key, or an object: {"value", "deviation", "text" (shown instead of the value, which
/// still sorts), "label" (a small tag beside it: simulated, published, …), "best": true (set off from the others)}.
/// What is absent or null is shown as a dash, and sorts last; a column of nothing else is left out.
std::string render_table(const nlohmann::json& table, const std::string& id);

}  // namespace tutti
