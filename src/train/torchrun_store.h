#pragma once

#include <functional>
#include <string>

namespace tutti {

/// For ranks that torchrun started: gives every rank what rank 0 passes, through the store at MASTER_ADDR:MASTER_PORT.
/// Keep the function until all ranks have what they need: rank 0's may be the store.
std::function<std::string(const std::string& of_rank_0)> share_through_torchrun(int rank);

}  // namespace tutti
