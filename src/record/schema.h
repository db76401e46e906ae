#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/utf8.h"
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
      throw Error("its \"{}\" is damaged: {}", key, printable(valid_utf8(problem.what())));  // which quotes it
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

/// For Rule::if_any; `initial` is what it begins with.
template <typename T>
bool is_nothing(const T& value, const T& initial) {
  if constexpr (IsVector<T>::value || std::is_same_v<T, std::string>)
    return value.empty();
  else if constexpr (HasSchema<T>::value)
    return write_value(value).empty();
  else if constexpr (std::is_arithmetic_v<T>)
    return value == initial;
  else
    return false;
}

/// How values of one type are read and written, whatever struct they are members of.
struct ValueType {
  void (*read)(JsonText& text, const std::string& key, Rule rule, void* to);
  /// `initial` is what the member begins with.
  void (*write)(nlohmann::json& record, const std::string& key, Rule rule, const void* from, const void* initial);
};

template <typename Value>
const ValueType& value_type() {
  static const ValueType type = {
      [](JsonText& text, const std::string& key, Rule rule, void* to) {
        Value& value = *static_cast<Value*>(to);
        if constexpr (std::is_same_v<Value, double> || std::is_same_v<Value, std::optional<double>>)
          if (rule == Rule::null_is_nan && text.next() == 'n') value = std::numeric_limits<double>::quiet_NaN();
        read_value(text, key, value);
      },
      [](nlohmann::json& record, const std::string& key, Rule rule, const void* from, const void* initial) {
        const Value& value = *static_cast<const Value*>(from);
        if constexpr (IsOptional<Value>::value)
          if (!value) return;
        if (rule != Rule::if_any || !is_nothing(value, *static_cast<const Value*>(initial)))
          record[key] = write_value(value);
      }};
  return type;
}

/// A member of T and its name.
template <typename T>
class Field {
 public:
  using Read = std::function<void(JsonText& text, const std::string& key, T& to)>;
  using Write = std::function<void(nlohmann::json& record, const std::string& key, const T& from)>;

  template <typename Base, typename Member>
  Field(const char* name, Member Base::*member, Rule rule = Rule::plain)
      : key(name), is_required(rule == Rule::required), rule_(rule), type_(&value_type<Member>()) {
    static_assert(std::is_base_of_v<Base, T>);
    const T like{};
    place_ = reinterpret_cast<const char*>(&(like.*member)) - reinterpret_cast<const char*>(&like);
  }
  /// One that stands in the record in a way of its own. Without a name: whatever no other member is called.
  Field(const char* name, Read reads, Write writes) : key(name), reads_(std::move(reads)), writes_(std::move(writes)) {}

  void read(JsonText& text, const std::string& named, T& to) const {
    if (type_ == nullptr)
      reads_(text, named, to);
    else
      type_->read(text, named, rule_, reinterpret_cast<char*>(&to) + place_);
  }
  void write(nlohmann::json& record, const T& from, const T& initial) const {
    if (type_ == nullptr)
      writes_(record, key, from);
    else
      type_->write(record, key, rule_, reinterpret_cast<const char*>(&from) + place_,
                   reinterpret_cast<const char*>(&initial) + place_);
  }

  std::string key;
  bool is_required = false;

 private:
  Rule rule_ = Rule::plain;
  const ValueType* type_ = nullptr;  // null: the functions below do it
  std::ptrdiff_t place_ = 0;         // bytes from the beginning of a T
  Read reads_;
  Write writes_;
};
constexpr const char* kAnyOther = "";

template <typename T>
class Schema {
 public:
  Schema(std::initializer_list<Field<T>> fields, const std::vector<Field<T>>& more = {}) : fields_(more) {
    fields_.insert(fields_.end(), fields);
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      places_[fields_[i].key] = i;
      has_required_ = has_required_ || fields_[i].is_required;
    }
  }

  void read(JsonText& text, T& to) const {
    std::vector<bool> is_there(has_required_ ? fields_.size() : 0);
    text.object([&](const std::string& key) {
      auto place = places_.find(key);
      if (place == places_.end()) place = places_.find(kAnyOther);
      if (place == places_.end()) {
        text.skip();
      } else {
        if (has_required_) is_there[place->second] = true;
        fields_[place->second].read(text, key, to);
      }
    });
    for (std::size_t i = 0; i < is_there.size(); ++i)
      if (fields_[i].is_required && !is_there[i]) throw Error("its \"{}\" is missing", fields_[i].key);
  }
  nlohmann::json write(const T& from) const {
    nlohmann::json record = nlohmann::json::object();
    const T initial{};
    for (const Field<T>& field : fields_) field.write(record, from, initial);
    return record;
  }

 private:
  std::vector<Field<T>> fields_;
  std::unordered_map<std::string, std::size_t> places_;
  bool has_required_ = false;
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
