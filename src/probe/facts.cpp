#include "probe/facts.h"

#include <link.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/build_info.h"
#include "base/cpu_times.h"
#include "base/sha256.h"
#include "comm/nodes.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLook{300};

struct LibrarySearch {
  std::string name, build_id;
};

/// Looks through the notes of one segment for the build id.
std::string build_id_in(const char* at, std::size_t bytes) {
  constexpr uint32_t kBuildId = 3;
  const auto padded = [](std::size_t size) { return (size + 3) / 4 * 4; };
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof note);
    const std::size_t all = sizeof note + padded(note.n_namesz) + padded(note.n_descsz);
    if (all > bytes) break;
    if (note.n_type == kBuildId && note.n_namesz == 4 && std::memcmp(at + sizeof note, "GNU", 4) == 0) {
      std::string hex;
      const auto* id = reinterpret_cast<const unsigned char*>(at + sizeof note + 4);
      for (std::size_t i = 0; i < note.n_descsz; ++i) hex += fmt::format("{:02x}", id[i]);
      return hex;
    }
    at += all;
    bytes -= all;
  }
  return "";
}

int look_at_library(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<LibrarySearch*>(data);
  if (fs::path(info->dlpi_name).filename().string().rfind(search.name, 0) != 0) return 0;
  for (int i = 0; i < info->dlpi_phnum && search.build_id.empty(); ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type == PT_NOTE)
      // NOLINTNEXTLINE(performance-no-int-to-ptr): where the loader says it is
      search.build_id = build_id_in(reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr), segment.p_memsz);
  }
  return 1;
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t colon = line.find(": ");
    return colon == std::string::npos ? "" : line.substr(colon + 2);
  }
  utsname machine{};
  ::uname(&machine);
  return machine.machine;
}

int64_t free_bytes(const fs::path& folder) {
  struct statvfs file_system {};
  if (::statvfs(folder.c_str(), &file_system) != 0) return 0;
  return static_cast<int64_t>(file_system.f_bavail) * static_cast<int64_t>(file_system.f_frsize);
}

/// The folder, or the nearest above it that exists: where it would be made.
fs::path existing(const fs::path& folder) {
  std::error_code none;
  fs::path at = fs::absolute(folder, none);
  while (!fs::exists(at, none) && at.has_parent_path() && at != at.parent_path()) at = at.parent_path();
  return at;
}

}  // namespace

std::string loaded_build_id(const std::string& name) {
  LibrarySearch search{name, ""};
  ::dl_iterate_phdr(look_at_library, &search);
  return search.build_id;
}

std::string hash_of(const std::vector<std::string>& parameters) {
  Sha256 hash;
  for (const std::string& parameter : parameters) hash.update(parameter + "\n");
  return hash.hex();
}

RankFacts own_build(const TorchFacts& torch) {
  RankFacts facts;
  facts.host = this_host();
  facts.binary = sha256_of_file("/proc/self/exe");
  facts.commit = build_commit();
  facts.build_type = build_type();
  facts.torch = torch;
  facts.torch_library = loaded_build_id("libtorch_cpu");
  return facts;
}

RankFacts own_facts(const TorchFacts& torch, const fs::path& runs_folder) {
  RankFacts facts = own_build(torch);
  utsname machine{};
  ::uname(&machine);
  facts.kernel = machine.release;
  facts.cpu = cpu_model();
  cpu_set_t set;
  CPU_ZERO(&set);
  facts.cores = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  const fs::path folder = existing(runs_folder);
  facts.runs_folder = folder.string();
  facts.free_disk = ::access(folder.c_str(), W_OK) == 0 ? free_bytes(folder) : -1;
  facts.free_shm = free_bytes("/dev/shm");
  double loads[1] = {0};
  if (::getloadavg(loads, 1) == 1) facts.load = loads[0];
  const CpuTimes before = read_cpu_times();
  std::this_thread::sleep_for(kLook);
  const MachineLoad during = load_between(before, read_cpu_times());
  facts.steal = during.steal;
  facts.busy = std::max(0.0, 100 - during.idle - during.steal);
  return facts;
}

void to_json(nlohmann::json& json, const RankFacts& facts) {
  json = {{"host", facts.host},
          {"binary", facts.binary},
          {"commit", facts.commit},
          {"build_type", facts.build_type},
          {"libtorch", facts.torch.libtorch},
          {"libtorch_build_id", facts.torch_library},
          {"gpus", facts.torch.gpus},
          {"model", facts.torch.model},
          {"parameters", facts.torch.parameters},
          {"mpi", facts.mpi},
          {"kernel", facts.kernel},
          {"cpu", facts.cpu},
          {"cores", facts.cores},
          {"load", facts.load},
          {"steal_percent", facts.steal},
          {"busy_percent", facts.busy},
          {"free_disk", facts.free_disk},
          {"free_shm", facts.free_shm},
          {"runs_folder", facts.runs_folder}};
}

void from_json(const nlohmann::json& json, RankFacts& facts) {
  facts = {};
  json.at("host").get_to(facts.host);
  json.at("binary").get_to(facts.binary);
  json.at("commit").get_to(facts.commit);
  json.at("build_type").get_to(facts.build_type);
  json.at("libtorch").get_to(facts.torch.libtorch);
  json.at("libtorch_build_id").get_to(facts.torch_library);
  json.at("gpus").get_to(facts.torch.gpus);
  json.at("model").get_to(facts.torch.model);
  json.at("parameters").get_to(facts.torch.parameters);
  json.at("mpi").get_to(facts.mpi);
  json.at("kernel").get_to(facts.kernel);
  json.at("cpu").get_to(facts.cpu);
  json.at("cores").get_to(facts.cores);
  json.at("load").get_to(facts.load);
  json.at("steal_percent").get_to(facts.steal);
  json.at("busy_percent").get_to(facts.busy);
  json.at("free_disk").get_to(facts.free_disk);
  json.at("free_shm").get_to(facts.free_shm);
  json.at("runs_folder").get_to(facts.runs_folder);
}

}  // namespace tutti
