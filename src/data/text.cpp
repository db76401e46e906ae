// Masked words and next sentences, as BERT is pretrained (Devlin et al., 2019, section 3.1 and appendix A).
//
// A *chunk* is a run of whole sentences of one document that fills a sample: as many as it takes to reach its length,
// at least two. Each time it is loaded, a chunk is cut in two between sentences. Its second part stays, or (half of the
// time) makes way for sentences of a chunk from another document; then 15 % of the tokens are hidden. The cut, the
// other chunk and the hidden tokens follow from seed, epoch and index. Every tenth chunk is held out as the test, whose
// samples are the same in every epoch.

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "data/documents.h"
#include "data/folders.h"
#include "data/random.h"
#include "data/sources.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSpecialTokens = 3;  // [CLS] first [SEP] second [SEP]
constexpr int64_t kFewestTokens = 8;
constexpr int64_t kTestEvery = 10;
constexpr double kMaskedShare = .15;
constexpr int kTriesForAnotherDocument = 16;
constexpr int64_t kNoWord = -100;  // what torch's losses ignore

/// Everything that was read, shared by training and test.
struct Corpus {
  std::shared_ptr<const Vocabulary> vocabulary;
  std::vector<Document> documents;
};

struct Chunk {
  int32_t document;
  int32_t first;  // sentences [first, end) of the document
  int32_t end;
};

int32_t sentence_begin(const Document& document, int32_t sentence) {
  return sentence == 0 ? 0 : document.sentence_ends[static_cast<size_t>(sentence) - 1];
}

std::vector<Chunk> cut_into_chunks(const std::vector<Document>& documents, int64_t length) {
  std::vector<Chunk> chunks;
  for (size_t i = 0; i < documents.size(); ++i) {
    const Document& document = documents[i];
    const auto sentences = static_cast<int32_t>(document.sentence_ends.size());
    for (int32_t first = 0, end = 1; end <= sentences; ++end) {
      const int64_t tokens = document.sentence_ends[static_cast<size_t>(end) - 1] - sentence_begin(document, first);
      const bool is_full = tokens >= length - kSpecialTokens;
      if (end - first < 2 || (!is_full && end < sentences)) continue;
      chunks.push_back({static_cast<int32_t>(i), first, end});
      first = end;
    }
  }
  return chunks;
}

/// Part of a document's tokens.
struct Run {
  const int32_t* begin;
  const int32_t* end;
  int64_t size() const { return end - begin; }
};

/// Shortens the longer one, at either end, until both fit.
void shorten(Run& first, Run& second, int64_t most, PortableRandom& random) {
  while (first.size() + second.size() > most) {
    Run& longer = first.size() > second.size() ? first : second;
    if (random.below(2) == 0) {
      ++longer.begin;
    } else {
      --longer.end;
    }
  }
}

class MaskedText : public Dataset {
 public:
  MaskedText(std::string name, std::shared_ptr<const Corpus> corpus, std::vector<Chunk> chunks, int64_t length,
             bool varies, uint64_t seed)
      : name_(std::move(name)),
        corpus_(std::move(corpus)),
        chunks_(std::move(chunks)),
        length_(length),
        masked_(static_cast<int64_t>(std::ceil(kMaskedShare * static_cast<double>(length)))),
        varies_(varies),
        seed_(seed) {}

  const std::string& name() const override { return name_; }
  int64_t size() const override { return static_cast<int64_t>(chunks_.size()); }
  SampleTraits traits() const override {
    return {SampleKind::masked_text, {length_}, 2, corpus_->vocabulary->size(), masked_};
  }
  bool varies() const override { return varies_; }

  void load(Pick pick, int64_t row, Batch& batch) const override {
    PortableRandom random(seed_, varies_ ? static_cast<uint64_t>(pick.epoch) : 0, static_cast<uint64_t>(pick.index));
    const Chunk& chunk = chunks_[static_cast<size_t>(pick.index)];
    const auto cut =
        static_cast<int32_t>(chunk.first + 1 + random.below(static_cast<uint64_t>(chunk.end - chunk.first - 1)));
    const bool follows = random.below(2) == 0 || chunks_.size() == 1;
    Run first = run(chunk.document, chunk.first, cut);
    Run second = follows ? run(chunk.document, cut, chunk.end) : run_from_elsewhere(pick.index, random);
    shorten(first, second, length_ - kSpecialTokens, random);
    const int64_t used = write_tokens(first, second, row, batch);
    hide_words(first.size(), used, row, batch, random);
    batch.target.data_ptr<int64_t>()[row] = follows ? 0 : 1;
  }

  /// A text with [MASK] in the places that are to be guessed.
  void encode(std::string_view content, const std::string& input, int64_t row, Batch& batch) const override {
    constexpr std::string_view kMark = "[MASK]";
    const Vocabulary& vocabulary = *corpus_->vocabulary;
    WordPiece pieces(vocabulary);
    std::vector<int32_t> tokens;
    std::vector<int64_t> places;
    while (true) {
      const size_t mark = content.find(kMark);
      pieces.tokenize(content.substr(0, mark), tokens);
      if (mark == std::string_view::npos) break;
      places.push_back(static_cast<int64_t>(tokens.size()) + 1);  // [CLS] comes first
      tokens.push_back(vocabulary.mask);
      content.remove_prefix(mark + kMark.size());
    }
    if (places.empty()) throw Error("{}: has no [MASK], the place of a word that is to be guessed", input);
    if (static_cast<int64_t>(places.size()) > masked_)
      throw Error("{}: has {} times [MASK]; {} are the most with --tokens {}", input, places.size(), masked_, length_);
    if (static_cast<int64_t>(tokens.size()) + 2 > length_)
      throw Error("{}: has {} tokens with [CLS] and [SEP]; the model takes {}. Shorten it", input, tokens.size() + 2,
                  length_);
    write_tokens({tokens.data(), tokens.data() + tokens.size()}, {nullptr, nullptr}, row, batch);
    int64_t* const positions = batch.inputs[3].data_ptr<int64_t>() + row * masked_;
    int64_t* const words = batch.inputs[4].data_ptr<int64_t>() + row * masked_;
    std::fill_n(positions, masked_, 0);
    std::fill_n(words, masked_, kNoWord);
    std::copy(places.begin(), places.end(), positions);
    std::fill_n(words, places.size(), int64_t{vocabulary.mask});
    batch.target.data_ptr<int64_t>()[row] = 0;
  }
  std::string label(int64_t number) const override {
    return std::string(corpus_->vocabulary->token(static_cast<int32_t>(number)));
  }

 private:
  Run run(int32_t document, int32_t first, int32_t end) const {
    const Document& source = corpus_->documents[static_cast<size_t>(document)];
    return {source.tokens.data() + sentence_begin(source, first), source.tokens.data() + sentence_begin(source, end)};
  }

  /// The end of a chunk of another document. Where there is but one document, of another chunk.
  Run run_from_elsewhere(int64_t index, PortableRandom& random) const {
    const auto others = static_cast<uint64_t>(chunks_.size() - 1);
    const Chunk* other = nullptr;
    for (int tries = 0; tries < kTriesForAnotherDocument; ++tries) {
      const uint64_t choice = random.below(others);
      other = &chunks_[choice < static_cast<uint64_t>(index) ? choice : choice + 1];
      if (other->document != chunks_[static_cast<size_t>(index)].document) break;
    }
    const auto skipped = static_cast<int32_t>(random.below(static_cast<uint64_t>(other->end - other->first)));
    return run(other->document, other->first + skipped, other->end);
  }

  /// Tokens, segments and attention; returns how many tokens there are.
  int64_t write_tokens(const Run& first, const Run& second, int64_t row, Batch& batch) const {
    const auto part = [&](size_t input) { return batch.inputs[input].data_ptr<int64_t>() + row * length_; };
    const Vocabulary& vocabulary = *corpus_->vocabulary;
    int64_t* const tokens = part(0);
    int64_t* to = tokens;
    *to++ = vocabulary.start;
    to = std::copy(first.begin, first.end, to);
    *to++ = vocabulary.separator;
    if (second.size() > 0) {
      to = std::copy(second.begin, second.end, to);
      *to++ = vocabulary.separator;
    }
    const int64_t used = to - tokens;
    std::fill(to, tokens + length_, vocabulary.padding);
    int64_t* const segments = part(1);
    std::fill_n(segments, length_, 0);
    std::fill(segments + std::min(first.size() + 2, used), segments + used, 1);
    int64_t* const attention = part(2);
    std::fill_n(attention, used, 1);
    std::fill(attention + used, attention + length_, 0);
    return used;
  }

  /// Picks the words to be guessed: 80 % of them become [MASK], 10 % any token, 10 % stay.
  void hide_words(int64_t first_size, int64_t used, int64_t row, Batch& batch, PortableRandom& random) const {
    int64_t* const tokens = batch.inputs[0].data_ptr<int64_t>() + row * length_;
    int64_t* const positions = batch.inputs[3].data_ptr<int64_t>() + row * masked_;
    int64_t* const words = batch.inputs[4].data_ptr<int64_t>() + row * masked_;
    std::vector<int64_t> candidates;
    candidates.reserve(static_cast<size_t>(used));
    for (int64_t i = 1; i + 1 < used; ++i) {
      if (i != first_size + 1) candidates.push_back(i);
    }
    const int64_t wanted = std::max<int64_t>(1, std::llround(kMaskedShare * static_cast<double>(used)));
    const int64_t count = std::min({wanted, masked_, static_cast<int64_t>(candidates.size())});
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t left = candidates.size() - static_cast<size_t>(i);
      std::swap(candidates[static_cast<size_t>(i)], candidates[static_cast<size_t>(i) + random.below(left)]);
    }
    std::sort(candidates.begin(), candidates.begin() + count);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t position = candidates[static_cast<size_t>(i)];
      positions[i] = position;
      words[i] = tokens[position];
      const uint64_t fate = random.below(10);
      if (fate < 8) tokens[position] = corpus_->vocabulary->mask;
      if (fate == 8)
        tokens[position] = static_cast<int64_t>(random.below(static_cast<uint64_t>(corpus_->vocabulary->size())));
    }
    std::fill(positions + count, positions + masked_, 0);
    std::fill(words + count, words + masked_, kNoWord);
  }

  const std::string name_;
  const std::shared_ptr<const Corpus> corpus_;
  const std::vector<Chunk> chunks_;
  const int64_t length_;
  const int64_t masked_;
  const bool varies_;
  const uint64_t seed_;
};

fs::path find_vocabulary(const DataOptions& options) {
  if (!options.vocabulary.empty()) return options.vocabulary;
  return require_data_folder("", "bert-vocab",
                             "Put the vocab.txt of bert-base-uncased there, or name a vocabulary with --vocabulary.") /
         "vocab.txt";
}

TrainTest open_texts(const DataOptions& options, const std::string& folder_name) {
  const int64_t length = options.tokens > 0 ? options.tokens : kDefaultTokens;
  if (length < kFewestTokens)
    throw UsageError("--tokens is {}: {} is the least for pairs of sentences", length, kFewestTokens);
  const fs::path folder =
      require_data_folder(options.folder, folder_name,
                          "Put plain text there, one *.txt file per document, or name such a folder with --data-path.");
  const fs::path vocabulary = find_vocabulary(options);
  auto corpus = std::make_shared<Corpus>();
  corpus->vocabulary = std::make_shared<Vocabulary>(read_file(vocabulary), vocabulary.string());
  corpus->documents = read_documents(folder, *corpus->vocabulary);
  std::vector<Chunk> train;
  std::vector<Chunk> test;
  for (const Chunk& chunk : cut_into_chunks(corpus->documents, length)) {
    const auto number = static_cast<int64_t>(train.size() + test.size());
    (number % kTestEvery == kTestEvery - 1 ? test : train).push_back(chunk);
  }
  if (test.empty()) {
    throw Error("{}: its *.txt files make {} samples of {} tokens; {} are the least. Add text, or lower --tokens.",
                folder.string(), train.size(), length, kTestEvery);
  }
  return {std::make_shared<MaskedText>(options.name, corpus, std::move(train), length, true, options.seed),
          std::make_shared<MaskedText>(options.name, corpus, std::move(test), length, false, options.seed)};
}

}  // namespace

TrainTest open_text(const DataOptions& options) { return open_texts(options, "text"); }
TrainTest open_gutenberg(const DataOptions& options) { return open_texts(options, "gutenberg"); }

}  // namespace tutti
