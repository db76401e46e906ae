#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tutti {

/// Host names in Slurm's bracket form: "gn[01-03,07]" for gn01, gn02, gn03, gn07; names that do not fit together are
/// separated by commas. Sorted, each once.
std::string compress_node_list(std::vector<std::string> hosts);

/// The names that a list in that form stands for; none where it cannot be read.
std::optional<std::vector<std::string>> expand_node_list(const std::string& list);

}  // namespace tutti
