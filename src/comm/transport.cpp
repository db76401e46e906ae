#include "comm/transport.h"

#include <fmt/ranges.h>

#include "base/names.h"
#include "comm/mpi/mpi.h"
#include "comm/nccl/nccl.h"
#include "comm/shm/shm.h"
#include "tutti/error.h"

namespace tutti {
namespace {

std::unique_ptr<Communicator> join_shm(const RankGroup& group) {
  ShmOptions options;
  options.rank = group.rank;
  options.size = group.size();
  options.servers = group.servers;
  options.job = group.job + "-" + group.name;
  options.connect_timeout = group.connect_timeout;
  options.progress_thread = group.progress_thread;
  options.limits = group.limits;
  options.ranks = group.ranks;
  return make_shm_communicator(options);
}

std::unique_ptr<Communicator> join_mpi(const RankGroup& group) {
  return make_mpi_communicator({group.name, group.rank, group.ranks, group.limits, group.progress_thread});
}

std::unique_ptr<Communicator> join_nccl(const RankGroup& group) {
  return make_nccl_communicator({group.rank, group.size(), group.gpu, group.share, group.limits.silent});
}

}  // namespace

const std::vector<Transport>& transports() {
  static const std::vector<Transport> table = {
      {"shm", "shared memory of one machine", true, false, false, [] { return std::string(); }, join_shm},
      {"mpi", "any network", false, false, true, [] { return std::string(built_with_mpi() ? "" : "MPI"); }, join_mpi},
      {"nccl", "between GPUs, one for each rank", false, true, false,
       [] { return std::string(nccl_version().empty() ? "NCCL" : ""); }, join_nccl},
  };
  return table;
}

const Transport* gpu_transport() {
  for (const Transport& transport : transports())
    if (transport.gpu_per_rank && transport.missing().empty()) return &transport;
  return nullptr;
}

std::vector<std::string> transport_names() {
  std::vector<std::string> names = {kAutoTransport};
  for (const Transport& transport : transports()) names.push_back(transport.name);
  return names;
}

const Transport& find_transport(const std::string& name) {
  for (const Transport& transport : transports())
    if (transport.name == name) return transport;
  throw UsageError(unknown_name("transport", name, transport_names()));
}

std::string transports_for_any_device() {
  std::vector<std::string> names;
  for (const Transport& transport : transports())
    if (!transport.gpu_per_rank) names.push_back(transport.name);
  return fmt::format("{}", fmt::join(names, " or "));
}

std::string transport_help() {
  std::string help = "what messages travel through:";
  for (const Transport& transport : transports()) help += "\n  " + transport.name + ": " + transport.summary;
  return help +
         "\n  auto: nccl where each rank trains on a GPU of its own, else the first of these that reaches all ranks";
}

}  // namespace tutti
