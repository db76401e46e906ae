#include "data/trees.h"

#include "fuzz/fuzz.h"

namespace tutti::fuzz {

static std::string fuzz_trees(std::string_view input) {
  static MemoryFile file;
  return outcome([&] {
    for (const LabelledTree& tree : read_trees(file.hold(input), 5)) {
      for (const Phrase& phrase : tree.phrases) {
        if (phrase.begin >= phrase.end || phrase.end > static_cast<int>(tree.tokens.size()) || phrase.label >= 5)
          throw std::logic_error("a phrase outside of its sentence");
      }
    }
  });
}

static std::vector<std::string> trees_seeds() {
  return {"(3 (2 A) (4 (3 good) (2 film)))\n", "(2 Yes)\n\n(0 (1 no) (2 .))", "(", ")", "\r\n", " (4 -LRB-)"};
}

static const Target kTrees("trees", fuzz_trees, trees_seeds);

}  // namespace tutti::fuzz
