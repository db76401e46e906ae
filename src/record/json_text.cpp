#include "record/json_text.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "base/json_files.h"
#include "base/utf8.h"
#include "tutti/error.h"

namespace tutti {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

void add_utf8(std::string& to, unsigned code) {
  if (code < 0x80) {
    to += static_cast<char>(code);
  } else if (code < 0x800) {
    to += static_cast<char>(0xC0 | code >> 6);
    to += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    to += static_cast<char>(0xE0 | code >> 12);
    to += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    to += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    to += static_cast<char>(0xF0 | code >> 18);
    to += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    to += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    to += static_cast<char>(0x80 | (code & 0x3F));
  }
}

}  // namespace

void JsonText::refuse(const char* what) const { throw Error("it is damaged: {} is missing", what); }

char JsonText::next() {
  while (at_ != end_ && is_space(*at_)) ++at_;
  return at_ == end_ ? '\0' : *at_;
}

void JsonText::open(char bracket) {
  if (next() != bracket) refuse(bracket == '{' ? "an object" : "a list");
  if (++depth_ > kDeepestJson) throw Error("it is nested more than {} deep", kDeepestJson);
  ++at_;
}

void JsonText::close() {
  --depth_;
  ++at_;
}

bool JsonText::goes_on(char bracket, bool is_first) {
  const char c = next();
  if (c == bracket) {
    close();
    return false;
  }
  if (is_first) return true;
  if (c != ',') refuse("a comma");
  ++at_;
  return true;
}

void JsonText::colon() {
  if (next() != ':') refuse("a colon");
  ++at_;
}

void JsonText::word(std::string_view expected) {
  if (static_cast<std::size_t>(end_ - at_) < expected.size() || std::string_view(at_, expected.size()) != expected)
    refuse("a value");
  at_ += expected.size();
}

unsigned JsonText::hex4() {
  if (end_ - at_ < 4) refuse("the end of a text");
  unsigned code = 0;
  const auto [rest, problem] = std::from_chars(at_, at_ + 4, code, 16);
  if (problem != std::errc() || rest != at_ + 4) refuse("the code of a character");
  at_ += 4;
  return code;
}

void JsonText::escape(std::string& to) {
  if (at_ == end_) refuse("the end of a text");
  const char c = *at_++;
  const std::string_view names = "\"\\/bfnrt", values = "\"\\/\b\f\n\r\t";
  if (c != 'u') {
    const std::size_t place = names.find(c);
    if (place == std::string_view::npos) refuse("a known escape");
    to += values[place];
    return;
  }
  unsigned code = hex4();
  // Two halves of a character beyond 16 bits; a half alone is none.
  if (code >= 0xD800 && code < 0xDC00 && end_ - at_ >= 6 && at_[0] == '\\' && at_[1] == 'u') {
    at_ += 2;
    const unsigned low = hex4();
    code = low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) : 0xFFFD;
  } else if (code >= 0xD800 && code < 0xE000) {
    code = 0xFFFD;
  }
  add_utf8(to, code);
}

std::string JsonText::text() {
  if (next() != '"') refuse("a text");
  const char* begin = ++at_;
  while (at_ != end_ && *at_ != '"' && *at_ != '\\') ++at_;
  std::string result(begin, at_);
  while (at_ != end_ && *at_ != '"') {
    if (*at_ == '\\') {
      ++at_;
      escape(result);
    } else {
      result += *at_++;
    }
  }
  if (at_ == end_) refuse("the end of a text");
  ++at_;
  // Who has written it is not known. It is printed, and written again.
  return printable(valid_utf8(std::move(result)));
}

double JsonText::number() {
  const char c = next();
  const bool is_negative = c == '-';
  if (!is_digit(is_negative && end_ - at_ > 1 ? at_[1] : c)) refuse("a number");
  double value = 0;
  const auto [rest, problem] = std::from_chars(at_, end_, value);
  if (problem != std::errc() || !std::isfinite(value)) refuse("a number that can be stored");
  at_ = rest;
  return value;
}

bool JsonText::flag() {
  const bool value = next() == 't';
  word(value ? "true" : "false");
  return value;
}

std::string_view JsonText::skip() {
  const char c = next();
  const char* const begin = at_;
  if (c == '{')
    object([this](const std::string&) { skip(); });
  else if (c == '[')
    array([this] { skip(); });
  else if (c == '"')
    text();
  else if (c == 't' || c == 'f')
    flag();
  else if (c == 'n')
    word("null");
  else
    number();
  return {begin, static_cast<std::size_t>(at_ - begin)};
}

void JsonText::end() {
  if (next() != '\0') refuse("the end of the record");
}

}  // namespace tutti
