#include "netbox/state.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/files.h"
#include "base/json_files.h"
#include "base/names.h"
#include "tutti/error.h"

namespace tutti::netbox {

namespace fs = std::filesystem;

std::string Box::switch_namespace() const { return namespace_prefix(name) + "switch"; }

std::vector<std::string> Box::node_names() const {
  std::vector<std::string> names;
  for (const BoxNode& node : nodes) names.push_back(node.name);
  return names;
}

const BoxNode& Box::node(const std::string& wanted) const {
  for (const BoxNode& node : nodes) {
    if (node.name == wanted || node.name == "n" + wanted) return node;
  }
  throw UsageError("cluster '{}': {}", name, unknown_name("node", wanted, node_names()));
}

void to_json(nlohmann::json& json, const Box& cluster) {
  json = {{"name", cluster.name},
          {"network",
           {{"name", cluster.network.name},
            {"real_bits_per_s", cluster.network.real},
            {"carried_bits_per_s", cluster.network.carried},
            {"scale", cluster.network.scale()}}},
          {"nodes", nlohmann::json::array()}};
  for (const BoxNode& node : cluster.nodes) {
    json["nodes"].push_back({{"name", node.name},
                             {"namespace", node.net_namespace},
                             {"port", node.port},
                             {"address", node.address},
                             {"slots", node.slots},
                             {"holder", node.holder},
                             {"bits_per_s", node.rate}});
  }
}

void from_json(const nlohmann::json& json, Box& cluster) {
  json.at("name").get_to(cluster.name);
  const nlohmann::json& network = json.at("network");
  network.at("name").get_to(cluster.network.name);
  network.at("real_bits_per_s").get_to(cluster.network.real);
  network.at("carried_bits_per_s").get_to(cluster.network.carried);
  cluster.nodes.clear();
  for (const nlohmann::json& entry : json.at("nodes")) {
    BoxNode node;
    entry.at("name").get_to(node.name);
    entry.at("namespace").get_to(node.net_namespace);
    entry.at("port").get_to(node.port);
    entry.at("address").get_to(node.address);
    entry.at("slots").get_to(node.slots);
    entry.at("holder").get_to(node.holder);
    entry.at("bits_per_s").get_to(node.rate);
    cluster.nodes.push_back(std::move(node));
  }
}

void check_cluster_name(const std::string& name) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789_-";
  const bool is_fine = !name.empty() && name.size() <= 32 && name.find_first_not_of(kAllowed) == std::string::npos &&
                       name[0] != '-' && name[0] != '_';
  if (!is_fine) {
    throw UsageError("'{}' cannot name a cluster: up to 32 of a-z, 0-9, _ and -, beginning with a letter or a digit",
                     name);
  }
}

fs::path state_root() { return "/run/tutti/cluster"; }
fs::path state_folder(const std::string& name) { return state_root() / name; }
std::string namespace_prefix(const std::string& name) { return "tutti-" + name + "-"; }

bool is_namespace_of(const std::string& cluster, const std::string& name_space) {
  const std::string prefix = namespace_prefix(cluster);
  if (name_space.compare(0, prefix.size(), prefix) != 0) return false;
  const std::string rest = name_space.substr(prefix.size());
  if (rest == "switch") return true;
  return rest.size() > 1 && rest[0] == 'n' && rest.find_first_not_of("0123456789", 1) == std::string::npos;
}

std::optional<Box> load_if_there(const std::string& name) {
  const fs::path path = state_folder(name) / "state.json";
  if (!fs::exists(path)) return std::nullopt;
  try {
    return read_json_file(path).get<Box>();
  } catch (const std::exception& error) {
    throw Error("{}: is not what `tutti cluster up` writes ({}). `tutti cluster down --name {}` removes it.",
                path.string(), error.what(), name);
  }
}

Box load(const std::string& name) {
  if (auto cluster = load_if_there(name)) return *std::move(cluster);
  const std::vector<std::string> names = cluster_names();
  throw Error("no cluster '{}' is up{}. `tutti cluster up{}` starts it.", name,
              names.empty() ? "" : fmt::format("; there is {} (--name)", fmt::join(names, ", ")),
              name == "tutti" ? "" : " --name " + name);
}

void save(const Box& cluster) {
  write_file_atomically(state_folder(cluster.name) / "state.json", nlohmann::json(cluster).dump(2) + "\n");
}

std::vector<std::string> cluster_names() {
  std::vector<std::string> names;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(state_root(), none)) {
    if (fs::exists(entry.path() / "state.json")) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

StateLock::StateLock() {
  make_folders(state_root());
  fd_ = ::open(state_root().c_str(), O_RDONLY | O_DIRECTORY);  // inherited on purpose, so without O_CLOEXEC
  if (fd_ < 0) throw Error("cannot open {}: {}", state_root().string(), std::strerror(errno));
  if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) return;
  fmt::print(stderr, "waiting for another `tutti cluster` to finish\n");
  while (::flock(fd_, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    const int reason = errno;
    ::close(fd_);
    throw Error("cannot lock {}: {}", state_root().string(), std::strerror(reason));
  }
}

StateLock::~StateLock() { ::close(fd_); }

}  // namespace tutti::netbox
