#include "record/tensorboard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/files.h"
#include "tutti/error.h"

// An event file is a list of events, each a protobuf message (tensorflow/core/util/event.proto) in the frame of a
// TFRecord: its length, that one's checksum, the message, its checksum. Of protobuf this takes four things.

namespace tutti {
namespace {

namespace fs = std::filesystem;

/// A protobuf message, written member by member.
class Message {
 public:
  Message& whole(int field, uint64_t value) {
    key(field, 0);
    varint(value);
    return *this;
  }
  Message& real(int field, double value) {
    key(field, 1);
    return raw(&value, sizeof value);
  }
  Message& real(int field, float value) {
    key(field, 5);
    return raw(&value, sizeof value);
  }
  Message& text(int field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    return raw(value.data(), value.size());
  }
  Message& part(int field, const Message& value) { return text(field, value.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  void key(int field, uint64_t type) { varint(static_cast<uint64_t>(field) << 3 | type); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  Message& raw(const void* data,
               std::size_t size) {  // all machines that Tutti runs on are little-endian, as protobuf is
    bytes_.append(static_cast<const char*>(data), size);
    return *this;
  }

  std::string bytes_;
};

// The members of these messages that are written.
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
enum SummaryField { kValue = 1 };
enum ValueField { kTag = 1, kSimpleValue = 2, kTensor = 8, kMetadata = 9 };
enum TensorField { kType = 1, kShape = 2, kStrings = 8 };
constexpr int kStringType = 7;
constexpr int kSessionStart = 1;  // of SessionLog: events with this step and later ones, in files before, do not count

void append_checksum(std::string& to, std::string_view of) {
  const uint32_t crc = crc32c(of);
  const uint32_t masked = ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
  to.append(reinterpret_cast<const char*>(&masked), sizeof masked);
}

std::string framed(const std::string& message) {
  const uint64_t size = message.size();
  std::string frame(reinterpret_cast<const char*>(&size), sizeof size);
  append_checksum(frame, frame);
  frame += message;
  append_checksum(frame, message);
  return frame;
}

/// So that Markdown shows it as it is.
std::string escaped(const std::string& text) {
  std::string shown;
  for (const char c : text) {
    if (std::strchr("\\`*_[]<>|~&#", c) != nullptr && c != 0) shown += '\\';
    shown += c == '\n' || c == '\r' ? ' ' : c;
  }
  return shown;
}

std::string table_of_options(const nlohmann::json& config) {
  std::string table = "| option | value |\n|---|---|\n";
  for (const auto& [name, value] : config.items())
    table +=
        fmt::format("| {} | {} |\n", escaped(name),
                    escaped(value.is_string() ? value.get<std::string>()
                                              : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
  return table;
}

using Scalars = std::vector<std::pair<std::string, double>>;

Scalars scalars(const ProgressRecord& record) {
  Scalars all = {{"train/learning_rate", record.lr}, {"train/samples_per_s", record.data_per_s}};
  if (record.loss) all.emplace_back("train/loss", *record.loss);
  if (record.loss_smoothed) all.emplace_back("train/loss_smoothed", *record.loss_smoothed);
  if (record.gradient_norm) all.emplace_back("train/gradient_norm", *record.gradient_norm);
  return all;
}

Scalars scalars(const EpochRecord& record) {
  Scalars all = {{"epoch/train_s", record.train_s}, {"epoch/samples_per_s", record.data_per_s}};
  if (record.train_loss) all.emplace_back("epoch/loss", *record.train_loss);
  RankTimes slowest;
  for (const RankEpoch& rank : record.ranks) {
    slowest.comm_s = std::max(slowest.comm_s, rank.comm_s);
    slowest.comm_exposed_s = std::max(slowest.comm_exposed_s, rank.comm_exposed_s);
    slowest.data_wait_s = std::max(slowest.data_wait_s, rank.data_wait_s);
  }
  all.insert(all.end(), {{"epoch/communication_s", slowest.comm_s},
                         {"epoch/exposed_communication_s", slowest.comm_exposed_s},
                         {"epoch/data_wait_s", slowest.data_wait_s}});
  if (!record.test) return all;
  all.emplace_back("test/loss", record.test->loss);
  for (const auto& [name, value] : record.test->metrics) all.emplace_back("test/" + name, value);
  return all;
}

class TensorboardFile : public RecordSink {
 public:
  TensorboardFile(const fs::path& folder, int64_t steps_done, std::function<void(const std::string&)> on_problem)
      : steps_done_(steps_done), on_problem_(std::move(on_problem)) {
    make_folders(folder, Readers::owner);
    char host[256] = "";
    ::gethostname(host, sizeof host - 1);
    // TensorBoard reads files in the order of their names, of which the time comes first.
    for (int again = 0; !file_ && again < 1000; ++again) {
      path_ = folder / fmt::format("events.out.tfevents.{:010}.{}.{}.{}", std::time(nullptr), host, ::getpid(), again);
      file_ = Fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600));
      if (!file_ && errno != EEXIST) break;
    }
    if (!file_) throw Error("cannot open the event file {}: {}", path_.string(), std::strerror(errno));
  }

  void add(const Record& record, double time_s) override {
    if (!file_) return;
    if (const auto* const run = std::get_if<RunRecord>(&record)) {
      add_event(Message().real(kWallTime, time_s).text(kFileVersion, "brain.Event:2"));
      add_event(event(time_s, steps_done_ + 1).part(kSessionLog, Message().whole(1, kSessionStart)));
      add_event(event(time_s, steps_done_).part(kSummary, text_summary("options", table_of_options(run->config))));
    } else if (const auto* const progress = std::get_if<ProgressRecord>(&record)) {
      add_scalars(scalars(*progress), progress->step, time_s);
    } else if (const auto* const epoch = std::get_if<EpochRecord>(&record)) {
      add_scalars(scalars(*epoch), epoch->step, time_s);
    }
  }

 private:
  static Message event(double time_s, int64_t step) {
    return Message().real(kWallTime, time_s).whole(kStep, static_cast<uint64_t>(step));
  }

  static Message text_summary(const std::string& tag, const std::string& text) {
    const Message shape = Message().part(2, Message().whole(1, 1));  // one dimension, of size 1
    const Message tensor = Message().whole(kType, kStringType).part(kShape, shape).text(kStrings, text);
    const Message metadata = Message().part(1, Message().text(1, "text"));  // the plug-in that shows it
    return Message().part(kValue,
                          Message().text(kTag, tag + "/text_summary").part(kTensor, tensor).part(kMetadata, metadata));
  }

  void add_scalars(const Scalars& all, int64_t step, double time_s) {
    Message summary;
    for (const auto& [tag, value] : all)
      summary.part(kValue, Message().text(kTag, tag).real(kSimpleValue, static_cast<float>(value)));
    add_event(event(time_s, step).part(kSummary, summary));
  }

  void add_event(const Message& message) {
    if (!file_) return;
    const std::string frame = framed(message.bytes());
    const off_t before = ::lseek(file_.get(), 0, SEEK_END);
    for (std::size_t done = 0; done < frame.size();) {
      const ssize_t put = ::write(file_.get(), frame.data() + done, frame.size() - done);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) {
        give_up(before, std::strerror(errno));
        return;
      }
      done += static_cast<std::size_t>(put);
    }
  }

  /// With whole events, the last of which ends there.
  void give_up(off_t end, const std::string& reason) {
    if (::ftruncate(file_.get(), end) != 0) {
      // Half an event stays; TensorBoard waits for the rest of it.
    }
    file_.close();
    on_problem_(
        fmt::format("cannot write the event file {}: {}. TensorBoard shows this run up to here; its records go on",
                    path_.string(), reason));
  }

  fs::path path_;
  Fd file_;
  const int64_t steps_done_;  // before this part of the run
  const std::function<void(const std::string&)> on_problem_;
};

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> all{};
    for (uint32_t byte = 0; byte < all.size(); ++byte) {
      uint32_t crc = byte;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0);
      all[byte] = crc;
    }
    return all;
  }();
  uint32_t crc = ~0U;
  for (const char byte : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

std::unique_ptr<RecordSink> tensorboard_events(const fs::path& folder, int64_t steps_done,
                                               std::function<void(const std::string& problem)> on_problem) {
  return std::make_unique<TensorboardFile>(folder, steps_done, std::move(on_problem));
}

}  // namespace tutti
