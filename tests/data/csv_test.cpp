#include "data/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/dataset.h"
#include "data/idx_files.h"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::vector<std::string>> rows_of(const std::string& content) {
  CsvReader reader(content, "x.csv");
  std::vector<std::vector<std::string>> rows{reader.columns()};
  for (std::vector<std::string> row; reader.next(row);) rows.push_back(row);
  return rows;
}

std::string csv_error(const std::string& content) {
  return error_text([&] { rows_of(content); });
}

TEST(Csv, HasFieldsInQuotesLineEndsOfAllKindsAndAByteOrderMark) {
  const auto rows =
      rows_of("\xef\xbb\xbfname,\"a, b\"\r\n\"two\nlines\",\"say \"\"hi\"\"\"\r\n\r\n,\"\"\r\nlast,\"x\"");
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_THAT(rows[0], ElementsAre("name", "a, b"));
  EXPECT_THAT(rows[1], ElementsAre("two\nlines", "say \"hi\""));
  EXPECT_THAT(rows[2], ElementsAre("", ""));
  EXPECT_THAT(rows[3], ElementsAre("last", "x"));
  EXPECT_THAT(rows_of("a,b\n1,\n")[1], ElementsAre("1", ""));
}

TEST(Csv, IsWrittenAsItIsRead) {
  const std::vector<std::string> fields{"", "a, \"b\"", "two\nlines", "\""};
  EXPECT_EQ(rows_of("p,q,r,s\n" + csv_line(fields))[1], fields);
}

TEST(Csv, NamesTheLineOfWhatIsWrong) {
  EXPECT_THAT(csv_error(""), HasSubstr("x.csv: it is empty"));
  EXPECT_THAT(csv_error("a,b\n\"1\n2\",3\n4\n"), HasSubstr("x.csv:4: 1 fields, but the first row names 2 columns"));
  EXPECT_THAT(csv_error("a,b\n1,2\n3,\"4\n5,6\n"), HasSubstr("x.csv:3: a field's quote is never closed"));
  EXPECT_THAT(csv_error("a,b\n\"1\"2,3\n"), HasSubstr("x.csv:2: text behind a field's closing quote"));
  EXPECT_THAT(csv_error("a,a\n"), HasSubstr("x.csv:1: two columns are called 'a'"));
  EXPECT_THAT(csv_error("a,\n"), HasSubstr("a column has no name"));
  EXPECT_THAT(csv_error("a;b\n1;2\n"), HasSubstr("commas"));
  EXPECT_THAT(csv_error("a\xff,b\n"), HasSubstr("not UTF-8"));
  EXPECT_THAT(csv_error(std::string("a,b\n1,\0\n", 8)), HasSubstr("x.csv:2: a NUL byte"));
}

class Table : public ::testing::Test {
 protected:
  TrainTest open(const std::string& content, const std::string& label = "") const {
    DataOptions options;
    options.name = "csv";
    options.folder = folder_.write("t.csv", content).string();
    options.label = label;
    return open_data(options);
  }
  std::string error(const std::string& content, const std::string& label = "") const {
    return error_text([&] { open(content, label); });
  }
  static Batch load_all(const Dataset& data) {
    Batch batch = data.make_batch(data.size(), false);
    for (int64_t i = 0; i < data.size(); ++i) data.load(i, i, batch);
    return batch;
  }

  TempFolder folder_;
};

/// Rows of a number, a text and a class that follows from both.
std::string flowers(int count) {
  std::string content = "size,colour,kind\n";
  for (int i = 0; i < count; ++i)
    content += std::to_string(1000 + i) + (i % 3 == 0 ? ",red," : ",blue,") + (i % 2 == 0 ? "rose\n" : "iris\n");
  return content;
}

TEST_F(Table, StandardizesNumbersOverTheTrainingPartAndGivesTextsAPlaceEach) {
  const TrainTest data = open(flowers(40));
  const SampleTraits traits = data.train->traits();
  EXPECT_EQ(traits.kind, SampleKind::table);
  EXPECT_THAT(traits.shape, ElementsAre(3));
  EXPECT_THAT(traits.class_names, ElementsAre("iris", "rose"));
  EXPECT_EQ(data.train->size(), 32);
  EXPECT_EQ(data.test->size(), 8);
  const Batch batch = load_all(*data.train);
  const torch::Tensor size = batch.inputs[0].select(1, 0);
  EXPECT_NEAR(size.mean().item<double>(), 0, 1e-6);
  EXPECT_NEAR(size.std(/*unbiased=*/false).item<double>(), 1, 1e-6);
  EXPECT_TRUE(batch.inputs[0].slice(1, 1, 3).sum(1).eq(1).all().item<bool>());
  const torch::Tensor reds = batch.inputs[0].select(1, 2).eq(1);  // blue, red
  EXPECT_GT(reds.sum().item<int64_t>(), 5);
}

TEST_F(Table, TakesTheColumnOfTheLabelThatIsNamed) {
  const TrainTest data = open(flowers(40), "colour");
  EXPECT_THAT(data.train->traits().class_names, ElementsAre("blue", "red"));
  EXPECT_THAT(error(flowers(40), "color"), AllOf(HasSubstr("--label 'color'"), HasSubstr("size, colour, kind")));
}

TEST_F(Table, KeepsRowsThatSayTheSameOnOneSide) {
  std::string content = "x,y\n";
  for (int i = 0; i < 50; ++i) content += std::to_string(i % 10) + "," + std::to_string(i % 10 % 2) + "\n";
  const TrainTest data = open(content);
  const torch::Tensor train = load_all(*data.train).inputs[0], test = load_all(*data.test).inputs[0];
  EXPECT_FALSE(train.unsqueeze(1).eq(test.unsqueeze(0)).any().item<bool>());
}

TEST_F(Table, SortsLabelsThatAreNumbersAsNumbers) {
  std::string content = "x,y\n";
  for (int i = 0; i < 36; ++i) content += std::to_string(i) + "," + std::to_string(i % 12) + "\n";
  EXPECT_THAT(open(content).train->traits().class_names,
              ElementsAre("0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"));
}

TEST_F(Table, NamesFileAndLineOfAValueThatIsMissing) {
  const std::string more = "3,a\n4,a\n5,a\n";
  EXPECT_THAT(error("x,y\n1,a\n,b\n" + more), HasSubstr("t.csv:3: column 'x' has no value"));
  EXPECT_THAT(error("x,y\n1,a\nNaN,b\n2,b\n" + more), HasSubstr("t.csv:3: column 'x' has no value ('NaN')"));
  EXPECT_THAT(error("x,y\n1,a\n2,\n"), HasSubstr("t.csv:3: column 'y' has no value"));
  folder_.write("train.csv", "x,y\n1,a\n2,b\n");
  folder_.write("val.csv", "x,y\n1,a\n?,b\n");
  DataOptions options;
  options.name = "csv";
  options.folder = folder_.path().string();
  EXPECT_THAT(error_text([&] { open_data(options); }), HasSubstr("val.csv:3: column 'x'"));
  folder_.write("val.csv", "x,y\n1,a\n");
  EXPECT_EQ(open_data(options).test->size(), 1);
}

TEST_F(Table, RefusesWhatIsNoTableOfClasses) {
  std::string names = "x,y\n", numbers = "x,y\n";
  for (int i = 0; i < 600; ++i) names += (i == 7 ? "12" : "n" + std::to_string(i)) + "," + std::to_string(i % 2) + "\n";
  for (int i = 0; i < 2000; ++i) numbers += "1," + std::to_string(i) + ".5\n";
  EXPECT_THAT(error(names),
              AllOf(HasSubstr("column 'x'"), HasSubstr("different texts"), HasSubstr("t.csv:2 has 'n0'")));
  EXPECT_THAT(error(numbers), AllOf(HasSubstr("column 'y'"), HasSubstr("1000 different labels"), HasSubstr("--label")));
  EXPECT_THAT(error("x,y\n1,a\n2,a\n"), HasSubstr("1 different labels"));
  EXPECT_THAT(error("y\na\nb\n"), HasSubstr("one of each is the least"));
  EXPECT_THAT(error("x,y\n1,a\n2,b\n"), HasSubstr("2 rows to train on and 0 to test"));
}

TEST(TextCsv, IsTextsOfOneColumnAndClassesOfAnother) {
  const TempFolder folder;
  std::string content = "id,label,body\n";
  for (int i = 0; i < 20; ++i)
    content += std::to_string(i) + "," + (i % 2 == 0 ? "good" : "bad") + ",\"A " + (i % 2 == 0 ? "fine" : "dull") +
               " film, indeed!\"\n";
  DataOptions options;
  options.name = "text-csv";
  options.folder = folder.write("t.csv", content).string();
  options.label = "label";
  EXPECT_THAT(error_text([&] { open_data(options); }), AllOf(HasSubstr("3 columns"), HasSubstr("--text")));
  options.text = "body";
  options.tokens = 8;
  const TrainTest data = open_data(options);
  EXPECT_EQ(data.train->traits().kind, SampleKind::sentences);
  EXPECT_THAT(data.train->traits().class_names, ElementsAre("bad", "good"));
  EXPECT_EQ(data.train->traits().vocabulary, 2 + 7);  // a film , indeed ! fine dull
  Batch batch = data.train->make_batch(1, false);
  data.train->load(0, 0, batch);
  const torch::Tensor words = batch.inputs[0][0];
  EXPECT_TRUE(words.slice(0, 0, 6).gt(1).all().item<bool>());
  EXPECT_TRUE(words.slice(0, 6).eq(0).all().item<bool>());
}

TEST(TextFolder, HasAFolderForEachClass) {
  const TempFolder folder;
  for (const char* name : {"good", "bad"}) fs::create_directories(folder.path() / name);
  for (int i = 0; i < 5; ++i) {
    folder.write("good/" + std::to_string(i) + ".txt", "A fine film.");
    folder.write("bad/" + std::to_string(i) + ".txt", "\xc3\x89 dull FILM.");
  }
  DataOptions options;
  options.name = "text-folder";
  options.folder = folder.path().string();
  const TrainTest data = open_data(options);
  EXPECT_EQ(data.train->size(), 8);
  EXPECT_EQ(data.test->size(), 2);
  EXPECT_THAT(data.train->traits().class_names, ElementsAre("bad", "good"));
  EXPECT_EQ(data.train->traits().vocabulary, 2 + 6);  // film . a fine e dull
  folder.write("bad/9.txt", " \n");
  EXPECT_THAT(error_text([&] { open_data(options); }), HasSubstr("bad/9.txt: holds no text"));
}

}  // namespace
}  // namespace tutti::test
