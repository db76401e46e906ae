#pragma once

namespace tutti {

/// Makes malloc keep big blocks instead of returning them to the system after each use. Training asks for the same big
/// blocks in every step; fetched anew, each of their pages costs a page fault. Call once, early in main, before other
/// threads start. Does nothing where the C library has no such settings.
void tune_malloc();

}  // namespace tutti
