#include "base/safetensors_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace tutti {

std::optional<std::size_t> element_bytes(std::string_view dtype) {
  static constexpr std::pair<std::string_view, std::size_t> kSizes[] = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1},
      {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},     {"I32", 4},
      {"F32", 4},  {"U64", 8}, {"I64", 8}, {"F64", 8},     {"C64", 8}};
  for (const auto& [name, bytes] : kSizes) {
    if (name == dtype) return bytes;
  }
  return std::nullopt;
}

std::optional<std::size_t> bytes_of_shape(const std::vector<int64_t>& shape, std::size_t element) {
  int64_t product = static_cast<int64_t>(element);
  bool empty = false;
  for (const int64_t dimension : shape) {
    if (dimension < 0) return std::nullopt;
    if (dimension == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(product, dimension, &product)) {
      return std::nullopt;
    }
  }
  return empty ? 0 : static_cast<std::size_t>(product);
}

std::string in_quotes(const std::string& text) {
  constexpr std::size_t kLongest = 120;
  const std::string shown = text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
  return nlohmann::json(shown).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string shape_text(const std::vector<int64_t>& shape) {
  constexpr std::size_t kLongest = 16;
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size() && i < kLongest; ++i) text += fmt::format("{}{}", i ? "," : "", shape[i]);
  return text + (shape.size() > kLongest ? ",...]" : "]");
}

}  // namespace tutti
