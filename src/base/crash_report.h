#pragma once

namespace tutti {

/// From now on a process that dies of a bad memory access or the like first writes to stderr where it was: one of many
/// ranks that dies once in a thousand runs leaves nothing else behind. It then dies of the signal as it would have.
void report_crashes();

}  // namespace tutti
