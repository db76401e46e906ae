#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tutti::netbox {

/// Bits per second on a link; 0 means not shaped.
using BitRate = std::uint64_t;

/// "2.5gbit" and the like (bit, kbit, mbit, gbit), or "unlimited". Throws UsageError saying what is wrong with it.
BitRate parse_rate(const std::string& text);
/// "2.5gbit"; "unlimited" for 0.
std::string format_rate(BitRate rate);

/// What the links of a cluster stand for and what they carry.
struct Network {
  std::string name;     // of the table below; empty when a rate was given
  BitRate real = 0;     // what the named network has
  BitRate carried = 0;  // what the links are shaped to

  bool is_scaled() const { return carried != real; }
  /// How many times faster the real network is.
  double scale() const { return is_scaled() ? static_cast<double>(real) / static_cast<double>(carried) : 1; }
};

/// The names that find_network() knows, slowest first.
std::vector<std::string> network_names();

/// The named network as a machine with that many cores can carry it: at its real rate, or scaled down. Throws
/// UsageError for an unknown name.
Network find_network(const std::string& name, unsigned cores);

/// The fastest links that so many cores were seen to carry, or are expected to.
BitRate carried_limit(unsigned cores);

/// Bytes that a link of this rate may send at once, unshaped: tbf's burst.
std::uint64_t burst_bytes(BitRate rate);

}  // namespace tutti::netbox
