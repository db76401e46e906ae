#include "train/torchrun_store.h"

#include <cstdint>
#include <cstdlib>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "tutti/error.h"

namespace tutti {
namespace {

std::string variable(const char* name, const char* otherwise = nullptr) {
  const char* const value = std::getenv(name);
  if (value != nullptr) return value;
  if (otherwise == nullptr) throw UsageError("torchrun's variable {} is not set: start Tutti with torchrun", name);
  return otherwise;
}

}  // namespace

std::function<std::string(const std::string&)> share_through_torchrun(int rank) {
  c10d::TCPStoreOptions options;
  const std::string host = variable("MASTER_ADDR"), port = variable("MASTER_PORT");
  options.port = static_cast<uint16_t>(std::strtoul(port.c_str(), nullptr, 10));
  // torchrun itself keeps the store, unless told otherwise.
  options.isServer = rank == 0 && variable("TORCHELASTIC_USE_AGENT_STORE", "False") != "True";
  options.waitWorkers = false;
  options.timeout = std::chrono::minutes(2);
  c10::intrusive_ptr<c10d::TCPStore> store;
  try {
    store = c10::make_intrusive<c10d::TCPStore>(host, options);
  } catch (const std::exception& error) {
    throw Error("cannot reach torchrun's store at {}:{}: {}", host, port, error.what());
  }
  const std::string key = "tutti/nccl/" + variable("TORCHELASTIC_RESTART_COUNT", "0");
  return [store, key, rank](const std::string& of_rank_0) -> std::string {
    if (rank == 0) {
      store->set(key, std::vector<uint8_t>(of_rank_0.begin(), of_rank_0.end()));
      return of_rank_0;
    }
    const std::vector<uint8_t> bytes = store->get(key);
    return {bytes.begin(), bytes.end()};
  };
}

}  // namespace tutti
