#include "record/record_reader.h"

#include <cerrno>
#include <cstring>

#include "record/fields.h"
#include "record/record_file.h"
#include "record/schemas.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr std::size_t kBufferBytes = 1 << 20;

/// Whether it is a cell, without reading it: the quotes of a key would be escaped inside of a text.
bool is_cell(const std::string& line) {
  static const std::string key = fmt::format("\"{}\":", kKindKey), value = fmt::format("\"{}\"", Cell::kKind);
  return line.find(key + value) != std::string::npos || line.find(key + " " + value) != std::string::npos;
}

/// What all records have.
struct Heading {
  std::string kind;
  double time_s = 0;
};

/// Of a record that is whole; without a kind for anything else.
Heading heading_of(const std::string& line) {
  Heading heading;
  try {
    JsonText text(line);
    text.object([&](const std::string& key) {
      if (key == kKindKey && text.next() == '"')
        heading.kind = text.text();
      else if (key == kTimeKey)
        heading.time_s = number_at(text, key).value_or(0);
      else
        text.skip();
    });
    text.end();
    return heading;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

RecordReader::RecordReader(const std::filesystem::path& file, RecordPlace from)
    : file_(file), buffer_(kBufferBytes), number_(from.lines), place_(from) {
  stream_.rdbuf()->pubsetbuf(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  stream_.open(file);
  if (!stream_) throw Error("cannot read {}: {}", file.string(), std::strerror(errno));
  stream_.seekg(from.bytes);
}

bool RecordReader::next() {
  if (!std::getline(stream_, line_)) {
    if (stream_.bad()) throw Error("cannot read {} beyond line {}: {}", file_.string(), number_, std::strerror(errno));
    return false;
  }
  ++number_;
  is_whole_ = !stream_.eof();  // a line that the end of the file ended has no newline
  if (is_whole_) place_ = {place_.bytes + static_cast<std::streamoff>(line_.size()) + 1, number_};
  // A cell is long, and is read as a whole later: what is wrong with it is noticed then.
  const Heading heading = is_whole_ && is_cell(line_) ? Heading{Cell::kKind, 0} : heading_of(line_);
  kind_ = heading.kind;
  time_s_ = heading.time_s;
  if (!kind_.empty()) return true;
  is_cut_off_ = !is_whole_;
  if (!is_cut_off_) refuse("this is not a record; the file is damaged. Remove the line to read the rest.");
  return false;
}

void RecordReader::refuse(const std::string& problem) const {
  throw Error("{}, line {}: {}", file_.string(), number_, problem);
}

template <typename T>
T RecordReader::as() const {
  try {
    if constexpr (std::is_same_v<T, Cell>)
      return parse_cell(line_);
    else
      return read_text<T>(line_);
  } catch (const Error& problem) {
    if constexpr (std::is_same_v<T, Cell>) refuse(problem.what());
    refuse(fmt::format("this record is not as `tutti train` writes it: {}", problem.what()));
  }
}

template RunRecord RecordReader::as() const;
template PlanRecord RecordReader::as() const;
template ProgressRecord RecordReader::as() const;
template EpochRecord RecordReader::as() const;
template StepBreakdown RecordReader::as() const;
template CheckpointRecord RecordReader::as() const;
template EndRecord RecordReader::as() const;
template SummaryRecord RecordReader::as() const;
template Cell RecordReader::as() const;

}  // namespace tutti
