#include "data/catalog.h"

#include <algorithm>

namespace tutti {
namespace {

// Commits are named, so that what lies there cannot change.
constexpr const char* kMnist = "https://ossci-datasets.s3.amazonaws.com/mnist/";
constexpr const char* kTrees =
    "https://raw.githubusercontent.com/iron-fe/rntn_on_Spark/c42e0605cdc05ea9526ae4d93ade1d6ced1a562e/trees/";
constexpr const char* kBooks =
    "https://raw.githubusercontent.com/yaushing/coursework/a221ee623a09e08d10ab0079d03e38b5d8e4f69f/nltk_data/corpora/"
    "gutenberg/";
constexpr const char* kVocabularyUrl =
    "https://raw.githubusercontent.com/huggingface/swift-coreml-transformers/47cb600b46f89f966907f999556cfd1335b4ad25/"
    "Resources/";

struct Row {
  const char* name;
  const char* sha256;
  const char* base;
  const char* remote_name = nullptr;  // null: the same
};

std::vector<KnownFile> files(std::initializer_list<Row> rows) {
  std::vector<KnownFile> result;
  for (const Row& row : rows) {
    const char* const remote_name = row.remote_name != nullptr ? row.remote_name : row.name;
    result.push_back({row.name, row.sha256, std::string(row.base) + remote_name});
  }
  return result;
}

std::vector<KnownData> make_catalog() {
  const std::vector<KnownFile> mnist = files({
      {"train-images-idx3-ubyte.gz", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609", kMnist},
      {"train-labels-idx1-ubyte.gz", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c", kMnist},
      {"t10k-images-idx3-ubyte.gz", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6", kMnist},
      {"t10k-labels-idx1-ubyte.gz", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6", kMnist},
  });
  const std::vector<KnownFile> sst5 = files({
      {"train.txt", "e2f3f41b0b1e6d4dddc0effe3bfc2d27ed8928079aa9a03d652311614fc5feb7", kTrees,
       "train%E5%89%AF%E6%9C%AC.txt"},
      {"dev.txt", "0e9336aed6e4730e19f58d00a77b3f0297efdb755f7b5e598c98a05e3f97ea40", kTrees},
      {"test.txt", "6e54806dee95cf80cd918e7dfb3f6770f6df24bf826f289a4d1f709e1c8f6761", kTrees},
  });
  const std::vector<KnownFile> books = files({
      {"austen-emma.txt", "71b0923d75fcf2f1faa897b22da8de8e2476d7478a2b22388eb58a3420e00215", kBooks},
      {"austen-persuasion.txt", "cec097657cbfeb62aafe178973f514fa07ab66a5e28ea025ebd5d51ca870e40f", kBooks},
      {"austen-sense.txt", "57b169c7cfa502896dee25bd66616f61cc1d21084caf31f015176ee46fda9718", kBooks},
      {"blake-poems.txt", "840897a66e23a47dd1fd56b864f421b2be0af074dc081244f7995bf26939eee9", kBooks},
      {"bryant-stories.txt", "5d86761f8609a6501c0bf9c00e4dd7e391681eb179bcb3bd61c43b5aa0f53b68", kBooks},
      {"burgess-busterbrown.txt", "d3e237c6e895644b573dd47b0b35a6474ed559e1d0a0fd2ed525b95087c17d5b", kBooks},
      {"carroll-alice.txt", "5ce9042c0d8536b072b61d4c7c4e6d70c72d9dbb5f3d816261326d9280749266", kBooks},
      {"chesterton-brown.txt", "67027976205b4b30e367c704807f56c8ffac3e8ea6037d993e57ab1fe28447ec", kBooks},
      {"chesterton-thursday.txt", "8b431a2a8db84089cd6f83fa66610c3b12c04114609df6e90137c0c58f2c5493", kBooks},
      {"edgeworth-parents.txt", "d36ac7a257467d242e1c3e3ae98d054853109873aa0899db25d045af619ad6f6", kBooks},
      {"melville-moby_dick.txt", "ff7424f923506564f5806983c046be4b60f50edcd48d327abf795dabb5eaa7f7", kBooks},
      {"milton-paradise.txt", "49028a77c557de1459e96c026edbe72997be2d9015925f7baefb793cd6fe706f", kBooks},
      {"shakespeare-caesar.txt", "7c46bd32fc84d9596bcad55b61ec3c1a390239acb190b286422855aafc2774b3", kBooks},
      {"shakespeare-hamlet.txt", "1eceab7027ad7e0cc25c6b6aadcb2e6bb070395cb2085f775ac732d63d5db240", kBooks},
      {"shakespeare-macbeth.txt", "d4a204352cfe5924cbae76f764225d120e9f7617d39cb8c949dedd3f306353ac", kBooks},
      {"whitman-leaves.txt", "93ebaf1dccc8f1514b4b1c2f52e64e81829113fc58cff63fb51ada0c72f99c3e", kBooks},
  });
  const std::vector<KnownFile> vocabulary =
      files({{"vocab.txt", "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3", kVocabularyUrl}});
  return {
      {"mnist", "mnist", mnist, 60000, 10000, "", ""},
      {"bigmnist", "mnist", mnist, 7200000, 10000, "", ""},
      {"sst5", "sst5", sst5, 8544, 2210, "", ""},
      {"nuclei",
       "dsb2018-nuclei-256",
       {},
       267,
       67,
       "",
       "the 256x256 pictures of the 2018 Data Science Bowl's stage 1 (BBBC038v1 of the Broad Bioimage Benchmark "
       "Collection) as images/ID.png and, for each, the union of its nuclei's masks as masks/ID.png"},
      {"folder-segmentation", "folder-segmentation", {}, 0, 0, "", "images/NAME.png and masks/NAME.png"},
      {"image-folder", "image-folder", {}, 0, 0, "", "a folder for each class with its JPEG or PNG pictures"},
      {"image-shards", "image-shards", {}, 0, 0, "", "tar files of WebDataset's kind (KEY.jpg with KEY.cls)"},
      {"csv", "csv", {}, 0, 0, "", "train.csv and val.csv, each a row of names, then rows of features and a label"},
      {"text-folder", "text-folder", {}, 0, 0, "", "a folder for each class with its *.txt files"},
      {"text-csv",
       "text-csv",
       {},
       0,
       0,
       "",
       "train.csv and val.csv, each a row of names, then rows of a text and a label"},
      {"gutenberg", "gutenberg", books, 0, 0, "bert-vocab", ""},
      {"text", "text", {}, 0, 0, "bert-vocab", "plain text, one *.txt file per document"},
      {"bert-vocab", "bert-vocab", vocabulary, 0, 0, "", ""},
  };
}

}  // namespace

const std::vector<KnownData>& data_catalog() {
  static const auto* const catalog = new std::vector<KnownData>(make_catalog());
  return *catalog;
}

const KnownData* find_known_data(std::string_view name) {
  const std::vector<KnownData>& catalog = data_catalog();
  const auto found =
      std::find_if(catalog.begin(), catalog.end(), [name](const KnownData& known) { return known.name == name; });
  return found == catalog.end() ? nullptr : &*found;
}

}  // namespace tutti
