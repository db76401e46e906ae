#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace tutti {

/// Something went wrong that a person has to know about. The text says what happened, where, and what to do;
/// it is printed as it is, without a stack trace.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& text) : std::runtime_error(text) {}

  template <typename... Args>
  explicit Error(fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)) {}
};

/// An option, a name or a combination of them that cannot work. `tutti` exits with 2 instead of 1.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// A run that was stopped by a signal or by another rank's failure; what caused it has been reported elsewhere.
class Stopped : public Error {
 public:
  using Error::Error;
};

}  // namespace tutti
