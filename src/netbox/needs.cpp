#include "netbox/needs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "base/process.h"
#include "tutti/error.h"

namespace tutti::netbox {

void require_root() {
  if (::geteuid() == 0) return;
  const bool can_ask = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1 && !find_program("sudo").empty();
  if (!can_ask) throw Error("`tutti cluster` makes and enters network namespaces, which needs root: run it with sudo");
  fmt::print(stderr, "tutti: network namespaces need root. Run this command with sudo? [y/N] ");
  std::string answer;
  std::getline(std::cin, answer);
  if (answer != "y" && answer != "Y" && answer != "yes") throw Error("not root: nothing was done");
  std::vector<std::string> words = {"sudo", "-E", std::filesystem::read_symlink("/proc/self/exe").string()};
  const std::vector<std::string> given = own_words();
  words.insert(words.end(), given.begin() + 1, given.end());
  become(words);
}

void require_tools() {
  for (const char* const program : {"ip", "tc"}) {
    if (find_program(program).empty())
      throw Error("the program `{}` is not there. Install iproute2: apt-get install iproute2", program);
  }
  if (find_program("nsenter").empty()) throw Error("the program `nsenter` is not there. Install util-linux");
}

}  // namespace tutti::netbox
