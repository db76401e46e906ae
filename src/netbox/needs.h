#pragma once

namespace tutti::netbox {

/// Returns if we are root. Else asks, on a terminal, whether to begin this command again with sudo, and does; or throws
/// Error saying what to do.
void require_root();

/// Throws Error naming the package when ip, tc or nsenter is missing.
void require_tools();

}  // namespace tutti::netbox
