#pragma once

#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "record/fields.h"
#include "record/json_text.h"
#include "tutti/error.h"

namespace tutti {

// A Schema names the members of a struct once, for writing and for reading. A struct T that has one says so with a
// function `const Schema<T>& schema(const T*)`; then T may be a member of others, alone, optional or in a vector.
// Structs without one are read and written by their own from_json and to_json.

template <typename T>
class Schema;

template <typename T, typename = void>
struct HasSchema : std::false_type {};
template <typename T>
struct HasSchema<T, std::void_t<decltype(schema(static_cast<const T*>(nullptr)))>> : std::true_type {};

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};

using NamedNumbers = std::vector<std::pair<std::string, double>>;  // an object in JSON

/// Reads the value of member `key`. Null leaves `to` as it is.
template <typename T>
void read_value(JsonText& text, const std::string& key, T& to) {
  if constexpr (IsOptional<T>::value) {
    if (text.next() == 'n') {
      text.skip();
      return;
    }
    typename T::value_type value{};
    read_value(text, key, value);
    to = std::move(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    to = text_at(text, key);
  } else if constexpr (std::is_same_v<T, bool>) {
    to = flag_at(text, key);
  } else if constexpr (std::is_integral_v<T>) {
    to = static_cast<T>(whole_at(text, key, static_cast<int64_t>(to)));
  } else if constexpr (std::is_same_v<T, double>) {
    to = number_at(text, key).value_or(to);
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    to = numbers_at(text, key);
  } else if constexpr (std::is_same_v<T, NamedNumbers>) {
    object_at(text, key, [&](const std::string& name) { to.emplace_back(name, number_at(text, name).value_or(0)); });
  } else if constexpr (IsVector<T>::value) {
    array_at(text, key, [&] {
      typename T::value_type value{};
      read_value(text, key, value);
      to.push_back(std::move(value));
    });
  } else if constexpr (HasSchema<T>::value) {
    if (has_at(text, key, '{')) schema(&to).read(text, to);
  } else {
    const std::string_view written = text.skip();
    try {
      const nlohmann::json value = nlohmann::json::parse(written);
      if (!value.is_null()) to = value.get<T>();
    } catch (const nlohmann::json::exception& problem) {
      throw Error("its \"{}\" is damaged: {}", key, problem.what());
    }
  }
}

template <typename T>
nlohmann::json write_value(const T& from) {
  if constexpr (IsOptional<T>::value) {
    return from ? write_value(*from) : nlohmann::json();
  } else if constexpr (std::is_same_v<T, NamedNumbers>) {
    nlohmann::json object = nlohmann::json::object();
    for (const auto& [name, number] : from) object[name] = number;
    return object;
  } else if constexpr (IsVector<T>::value) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& value : from) list.push_back(write_value(value));
    return list;
  } else if constexpr (HasSchema<T>::value) {
    return schema(&from).write(from);
  } else {
    return from;
  }
}

enum class Rule {
  plain,        // always written, but for an optional that is empty
  required,     // must be there to be read
  null_is_nan,  // a number that may be none
  if_any,       // not written where it has the value that it begins with, or where there is none of it
};

template <typename T>
class Schema {
 public:
  using Read = std::function<void(JsonText& text, const std::string& key, T& to)>;
  using Write = std::function<void(nlohmann::json& record, const std::string& key, const T& from)>;

  template <typename Base, typename Member>
  Schema& add(const char* key, Member Base::*member, Rule rule = Rule::plain) {
    static_assert(std::is_base_of_v<Base, T>);
    if (rule == Rule::required) required_.push_back(key);
    return add(
        key,
        [member, rule](JsonText& text, const std::string& name, T& to) {
          if constexpr (std::is_same_v<Member, double> || std::is_same_v<Member, std::optional<double>>)
            if (rule == Rule::null_is_nan && text.next() == 'n') to.*member = std::numeric_limits<double>::quiet_NaN();
          read_value(text, name, to.*member);
        },
        [member, rule](nlohmann::json& record, const std::string& name, const T& from) {
          if constexpr (IsOptional<Member>::value)
            if (!(from.*member)) return;
          if (rule == Rule::if_any && is_nothing(from.*member, T().*member)) return;
          record[name] = write_value(from.*member);
        });
  }
  /// A member that stands in the record in a way of its own.
  Schema& add(const char* key, Read read, Write write) {
    readers_[key] = std::move(read);
    writers_.emplace_back(key, std::move(write));
    return *this;
  }
  /// For all names that no member has.
  Schema& others(Read read, Write write) {
    read_other_ = std::move(read);
    writers_.emplace_back("", std::move(write));
    return *this;
  }

  void read(JsonText& text, T& to) const {
    std::size_t found = 0;
    text.object([&](const std::string& key) {
      if (const auto reader = readers_.find(key); reader != readers_.end()) {
        for (const std::string& one : required_) found += one == key ? 1 : 0;
        reader->second(text, key, to);
      } else if (read_other_) {
        read_other_(text, key, to);
      } else {
        text.skip();
      }
    });
    if (found < required_.size()) throw Error("one of \"{}\" is missing", fmt::join(required_, "\", \""));
  }
  nlohmann::json write(const T& from) const {
    nlohmann::json record = nlohmann::json::object();
    for (const auto& [key, write_one] : writers_) write_one(record, key, from);
    return record;
  }

 private:
  template <typename Member>
  static bool is_nothing(const Member& value, const Member& initial) {
    if constexpr (IsVector<Member>::value || std::is_same_v<Member, std::string>)
      return value.empty();
    else if constexpr (HasSchema<Member>::value)
      return write_value(value).empty();
    else if constexpr (std::is_arithmetic_v<Member>)
      return value == initial;
    else
      return false;
  }

  std::unordered_map<std::string, Read> readers_;
  std::vector<std::pair<std::string, Write>> writers_;
  std::vector<std::string> required_;
  Read read_other_;
};

/// Reads a whole text.
template <typename T>
T read_text(std::string_view line) {
  T result{};
  JsonText text(line);
  schema(&result).read(text, result);
  text.end();
  return result;
}

}  // namespace tutti
