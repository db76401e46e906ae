#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The format (github.com/huggingface/safetensors): the header's length as 8 little-endian bytes; the header, a JSON
// object that maps names to {"dtype", "shape", "data_offsets": [begin, end]} and may end in spaces; the data. Offsets
// count from the first byte after the header, and the arrays cover the data exactly.

namespace tutti {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "lengths and elements are written as they are in memory");

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the reference implementation's limit
constexpr std::size_t kPieceBytes = 1 << 20;       // hashed and written (or read and hashed) while still in the cache
constexpr const char* kMetadataKey = "__metadata__";

std::optional<std::size_t> element_bytes(std::string_view dtype);
/// nullopt when the shape is negative or too large. Stricter than the format for empty arrays: the other dimensions
/// have to fit as well, so that whoever multiplies them (for strides) cannot overflow.
std::optional<std::size_t> bytes_of_shape(const std::vector<int64_t>& shape, std::size_t element);
/// For messages: control characters escaped, not too long.
std::string in_quotes(const std::string& text);
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace tutti
