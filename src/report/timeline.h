#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>

namespace tutti {

/// One step of a Chrome trace (chrome_trace.h's form: measured by `tutti train --trace`, or predicted) as a timeline of
/// a page document:
///
///   {"title", "step", "length_us", "lanes": [{"rank", "name"}…],
///    "events": [{"lane": index, "name", "begin_us", "end_us", "kind", "label"? (where room is short),
///                "details": {…}}…]}
///
/// Times count from the moment the first rank begins the step, until the last one ends it (`length_us`: what a page
/// shows at first). What reaches into the step from the one before begins below 0. Without `step` it is the step of
/// median duration, which shows what is usual. Throws Error if there is no such step, or if this is no trace.
nlohmann::json timeline_from_trace(const nlohmann::json& trace, std::optional<int64_t> step = {});

}  // namespace tutti
