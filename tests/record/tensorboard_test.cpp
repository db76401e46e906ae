// Event files are read here by a small reader of its own, which knows protobuf's wire format and TFRecord's frames.
#include "record/tensorboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <map>

#include "base/files.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// Bit by bit, where the writer has a table.
uint32_t masked_checksum(std::string_view bytes) {
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? (crc >> 1) ^ 0x82f63b78 : crc >> 1;
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

/// The messages in a file's frames.
std::vector<std::string> messages_of(std::string_view file) {
  std::vector<std::string> messages;
  while (!file.empty()) {
    if (file.size() < 16) throw Error("half a frame");
    const std::size_t size = little_endian(file.substr(0, 8));
    if (file.size() < 16 + size) throw Error("half a message");
    const std::string_view message = file.substr(12, size);
    if (little_endian(file.substr(8, 4)) != masked_checksum(file.substr(0, 8)) ||
        little_endian(file.substr(12 + size, 4)) != masked_checksum(message))
      throw Error("a wrong checksum");
    messages.emplace_back(message);
    file.remove_prefix(16 + size);
  }
  return messages;
}

/// The members of a message: number, and bytes as they stand there (varints as eight bytes).
std::multimap<int, std::string> members_of(std::string_view message) {
  std::multimap<int, std::string> members;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(0));
      message.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
  };
  while (!message.empty()) {
    const uint64_t key = varint();
    std::string bytes;
    if ((key & 7) == 0) {
      const uint64_t value = varint();
      bytes.assign(reinterpret_cast<const char*>(&value), sizeof value);
    } else {
      const std::size_t size = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : varint();
      bytes = message.substr(0, size);
      message.remove_prefix(size);
    }
    members.emplace(static_cast<int>(key >> 3), bytes);
  }
  return members;
}

std::string member(std::string_view message, int number) {
  const auto members = members_of(message);
  const auto found = members.find(number);
  return found == members.end() ? "" : found->second;
}

template <typename Number>
Number number_in(const std::string& bytes) {
  Number number{};
  EXPECT_EQ(bytes.size(), sizeof number);
  std::memcpy(&number, bytes.data(), std::min(bytes.size(), sizeof number));
  return number;
}

/// "tag @ step" and value of each scalar.
std::map<std::string, float> scalars_of(const std::vector<std::string>& events) {
  std::map<std::string, float> scalars;
  for (const std::string& event : events)
    for (const auto& [number, value] : members_of(member(event, 5)))
      if (const std::string simple = member(value, 2); !simple.empty())
        scalars[member(value, 1) + " @ " + std::to_string(number_in<uint64_t>(member(event, 2)))] =
            number_in<float>(simple);
  return scalars;
}

class TensorboardFiles : public testing::Test {
 protected:
  TensorboardFiles() {
    char name[] = "/tmp/tensorboard_test.XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~TensorboardFiles() override { remove_tree(folder_); }

  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(folder_ / "tensorboard")) all.push_back(entry.path());
    std::sort(all.begin(), all.end());
    return all;
  }
  std::unique_ptr<RecordSink> sink(int64_t steps_done = 0) {
    return tensorboard_events(folder_ / "tensorboard", steps_done,
                              [this](const std::string& problem) { problems_.push_back(problem); });
  }

  fs::path folder_;
  std::vector<std::string> problems_;
};

TEST(Crc32c, IsThatOfTheStandard) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);  // RFC 3720
}

TEST_F(TensorboardFiles, HoldTheCourseOfARunAndItsOptions) {
  const auto writer = sink();
  RunRecord run;
  run.config = {{"model", "my_net|<b>"}, {"batch", 64}};
  writer->add(run, 1000.5);
  ProgressRecord progress{300, 1, 250.5, 0.01, 0.75};
  progress.loss_smoothed = 0.5;
  writer->add(progress, 1001);
  progress.step = 400;
  progress.gradient_norm = 2;
  writer->add(progress, 1002);
  EpochRecord epoch;
  epoch.step = 471;
  epoch.train_loss = 0.25;
  epoch.ranks.resize(2);
  epoch.ranks[1].comm_exposed_s = 1.5;
  epoch.test = TestResults{10, 0.125, {{"accuracy", 0.5}}};
  writer->add(epoch, 1003);
  writer->add(CheckpointRecord{}, 1004);  // has no course

  ASSERT_EQ(files().size(), 1U);
  EXPECT_THAT(files()[0].filename().string(), HasSubstr("events.out.tfevents."));
  const std::vector<std::string> events = messages_of(read_file(files()[0]));
  ASSERT_EQ(events.size(), 6U);
  EXPECT_EQ(member(events[0], 3), "brain.Event:2");
  EXPECT_EQ(number_in<double>(member(events[0], 1)), 1000.5);
  const std::string text = member(member(events[2], 5), 1);
  EXPECT_EQ(member(text, 1), "options/text_summary");
  EXPECT_EQ(member(member(member(text, 9), 1), 1), "text");
  EXPECT_THAT(member(member(text, 8), 8),
              AllOf(HasSubstr("| model | my\\_net\\|\\<b\\> |"), HasSubstr("| batch | 64 |")));
  const std::map<std::string, float> scalars = scalars_of(events);
  EXPECT_EQ(scalars.at("train/loss @ 300"), 0.75F);
  EXPECT_EQ(scalars.at("train/loss_smoothed @ 300"), 0.5F);
  EXPECT_EQ(scalars.at("train/learning_rate @ 300"), 0.01F);
  EXPECT_EQ(scalars.at("train/samples_per_s @ 300"), 250.5F);
  EXPECT_EQ(scalars.count("train/gradient_norm @ 300"), 0U);
  EXPECT_EQ(scalars.at("train/gradient_norm @ 400"), 2.0F);
  EXPECT_EQ(scalars.at("epoch/exposed_communication_s @ 471"), 1.5F);
  EXPECT_EQ(scalars.at("epoch/loss @ 471"), 0.25F);
  EXPECT_EQ(scalars.at("test/accuracy @ 471"), 0.5F);
  EXPECT_EQ(scalars.at("test/loss @ 471"), 0.125F);
}

TEST_F(TensorboardFiles, OfARunThatGoesOnTakeBackWhatCameAfterItsCheckpoint) {
  sink()->add(RunRecord{}, 1);
  sink(200)->add(RunRecord{}, 2);
  ASSERT_EQ(files().size(), 2U);  // also in the same second
  std::vector<uint64_t> steps;
  for (const fs::path& file : files())
    for (const std::string& event : messages_of(read_file(file)))
      if (const std::string session = member(event, 7); !session.empty()) {
        EXPECT_EQ(number_in<uint64_t>(member(session, 1)), 1U);  // SessionLog::START
        steps.push_back(number_in<uint64_t>(member(event, 2)));
      }
  EXPECT_THAT(steps, ElementsAre(1U, 201U));
}

TEST_F(TensorboardFiles, ThatCannotBeWrittenAnyMoreEndWithAWholeEventAndSaySoOnce) {
  const auto writer = sink();
  writer->add(RunRecord{}, 1);
  const std::size_t size = read_file(files()[0]).size();
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {size + 20, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  writer->add(ProgressRecord{}, 2);
  writer->add(ProgressRecord{}, 3);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(messages_of(read_file(files()[0])).size(), 3U);
  EXPECT_THAT(problems_, ElementsAre(AllOf(HasSubstr("cannot write the event file"), HasSubstr("File too large"))));
}

TEST_F(TensorboardFiles, ThatCannotBeMadeAreRefused) {
  write_file_atomically(folder_ / "tensorboard", "no folder");
  EXPECT_THROW(sink(), Error);
}

}  // namespace
}  // namespace tutti
