#include "watch/access.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <random>

#include "base/files.h"
#include "base/sha256.h"
#include "tutti/error.h"

namespace tutti {
namespace {

std::string digest(std::string_view text) {
  Sha256 sha;
  sha.update(text);
  return sha.hex();
}

bool is_token_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("._~-").find(c) != std::string_view::npos;
}

/// A file that only this user can have written and can read.
bool is_private(const std::string& file) {
  struct stat about {};
  return ::lstat(file.c_str(), &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == ::geteuid() &&
         (about.st_mode & 0077) == 0;
}

}  // namespace

std::string new_token() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", random());
  return token;
}

std::string problem_of_token(std::string_view token) {
  if (token.size() < 8) return "it is shorter than 8 characters";
  if (token.size() > 200) return "it is longer than 200 characters";
  return std::all_of(token.begin(), token.end(), is_token_letter) ? ""
                                                                  : "it has other characters than A-Z a-z 0-9 . _ ~ -";
}

std::string kept_token(const std::string& file) {
  try {
    if (is_private(file)) {
      std::string token = read_file(file);
      while (!token.empty() && token.back() == '\n') token.pop_back();
      if (problem_of_token(token).empty()) return token;
    }
    std::string token = new_token();
    write_file_atomically(file, token + "\n", Readers::owner);
    return token;
  } catch (const Error&) {
    return new_token();  // a folder of somebody else's: it lasts as long as this process
  }
}

bool is_token(std::string_view given, std::string_view token) {
  const std::string a = digest(given), b = digest(token);
  unsigned different = 0;
  for (std::size_t i = 0; i < a.size(); ++i) different |= static_cast<unsigned>(a[i] ^ b[i]);
  return different == 0;
}

bool is_loopback(std::string_view address) {
  return address == "localhost" || address == "::1" || address.substr(0, 4) == "127.";
}

bool names_loopback(std::string_view host_header) {
  std::string_view name = host_header;
  if (!name.empty() && name.front() == '[') {  // [::1]:8080
    const std::size_t end = name.find(']');
    if (end == std::string_view::npos) return false;
    name = name.substr(1, end - 1);
  } else {
    name = name.substr(0, name.find(':'));
  }
  return name == "localhost" || name == "127.0.0.1" || name == "::1";
}

std::string cookie_of(std::string_view header, std::string_view name) {
  while (!header.empty()) {
    const std::size_t end = std::min(header.find(';'), header.size());
    std::string_view pair = header.substr(0, end);
    header.remove_prefix(std::min(end + 1, header.size()));
    while (!pair.empty() && pair.front() == ' ') pair.remove_prefix(1);
    const std::size_t equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == name) return std::string(pair.substr(equals + 1));
  }
  return "";
}

}  // namespace tutti
