#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// A sentence as the Penn Treebank splits it, in lower case (ASCII): "It's (not) bad." becomes it 's -lrb- not -rrb-
/// bad and a full stop. Text that is split already stays as it is.
std::vector<std::string> treebank_words(std::string_view sentence);

}  // namespace tutti
