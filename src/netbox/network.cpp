#include "netbox/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/names.h"
#include "tutti/error.h"

namespace tutti::netbox {
namespace {

constexpr BitRate kMega = 1'000'000;
constexpr BitRate kGiga = 1'000'000'000;

struct NamedRate {
  std::string_view name;
  BitRate rate;
};
constexpr std::array<NamedRate, 13> kNetworks = {{{"10mbit", 10 * kMega},
                                                  {"100mbit", 100 * kMega},
                                                  {"1gbe", kGiga},
                                                  {"2.5gbe", 2500 * kMega},
                                                  {"5gbe", 5 * kGiga},
                                                  {"10gbe", 10 * kGiga},
                                                  {"25gbe", 25 * kGiga},
                                                  {"40gbe", 40 * kGiga},
                                                  {"50gbe", 50 * kGiga},
                                                  {"100gbe", 100 * kGiga},
                                                  {"100gbib", 100 * kGiga},  // InfiniBand EDR: its rate only
                                                  {"200gbe", 200 * kGiga},
                                                  {"400gbe", 400 * kGiga}}};

constexpr std::array<NamedRate, 4> kUnits = {{{"gbit", kGiga}, {"mbit", kMega}, {"kbit", 1000}, {"bit", 1}}};

// What networks that are too fast are scaled to: two cores carry it on four links at once with half of their time left.
constexpr BitRate kScaledRate = kGiga;
constexpr BitRate kLeastRate = 100'000;  // below this a full-size packet takes more than 0.1 s
constexpr BitRate kMostRate = 1000 * kGiga;

}  // namespace

BitRate parse_rate(const std::string& text) {
  if (text == "unlimited") return 0;
  const auto fail = [&](const std::string& why) -> UsageError {
    return UsageError(
        "the rate '{}' {}. Write a number and bit, kbit, mbit or gbit, as in 1gbit, 2.5gbit or 100mbit; or unlimited.",
        text, why);
  };
  std::size_t end = 0;
  double number = 0;
  try {
    number = std::stod(text, &end);
  } catch (const std::exception&) {
    throw fail("does not begin with a number");
  }
  const std::string unit = text.substr(end);
  const auto* const found =
      std::find_if(kUnits.begin(), kUnits.end(), [&](const auto& entry) { return entry.name == unit; });
  if (found == kUnits.end()) throw fail(unit.empty() ? "has no unit" : fmt::format("has the unknown unit '{}'", unit));
  const double rate = std::round(number * static_cast<double>(found->rate));
  if (!(rate >= static_cast<double>(kLeastRate) && rate <= static_cast<double>(kMostRate)))
    throw fail(fmt::format("is not between {} and {}", format_rate(kLeastRate), format_rate(kMostRate)));
  return static_cast<BitRate>(rate);
}

std::string format_rate(BitRate rate) {
  if (rate == 0) return "unlimited";
  for (const NamedRate& unit : kUnits) {
    if (rate >= unit.rate)
      return fmt::format("{:.6g}{}", static_cast<double>(rate) / static_cast<double>(unit.rate), unit.name);
  }
  return "";
}

std::vector<std::string> network_names() {
  std::vector<std::string> names;
  names.reserve(kNetworks.size());
  for (const NamedRate& network : kNetworks) names.emplace_back(network.name);
  return names;
}

BitRate carried_limit(unsigned cores) {
  // Two cores carried a ring of four flows at 2.5 Gbit each, and 10 Gbit at times only. More cores are assumed to carry
  // in proportion.
  return std::max(1U, cores) * 1250 * kMega;
}

Network find_network(const std::string& name, unsigned cores) {
  for (const NamedRate& network : kNetworks) {
    if (network.name != name) continue;
    return {name, network.rate, network.rate <= carried_limit(cores) ? network.rate : kScaledRate};
  }
  throw UsageError("{} Or give a --rate.", unknown_name("network", name, network_names()));
}

std::uint64_t burst_bytes(BitRate rate) {
  // Measured (docs/studies/box-links.md): 2 ms at up to 2.5 Gbit, but not below 70 KB, which tbf needs for a segmented
  // 64 KB packet, and not above 256 KB, since a burst passes unshaped. Faster links need more to reach their rate.
  const std::uint64_t two_ms = rate / 8 / 500;
  if (rate <= 2500 * kMega) return std::clamp<std::uint64_t>(two_ms, 70'000, 262'144);
  return two_ms * 8 / 5;
}

}  // namespace tutti::netbox
