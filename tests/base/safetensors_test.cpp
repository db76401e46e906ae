#include "base/safetensors.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <utility>

#include "base/files.h"
#include "base/sha256.h"
#include "support/text.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

/// A folder of its own for each test.
class Safetensors : public testing::Test {
 protected:
  Safetensors() {
    char name[] = "/tmp/safetensors_test.XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = folder_ / "model.safetensors";
  }
  ~Safetensors() override { remove_tree(folder_); }

  void put(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }

  /// What reading `bytes` as a file complains about; "" when it does not.
  std::string complaint(const std::string& bytes) {
    put(bytes);
    try {
      const SafetensorsFile file(path_);
      return "";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(path_.string()), std::string::npos) << error.what();
      return error.what();
    }
  }

  std::vector<std::string> names_in_folder() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename());
    return names;
  }

  fs::path folder_;
  fs::path path_;
};

std::string length_bytes(uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xff);
  return bytes;
}

/// A file put together as the format's specification says.
std::string by_hand(const std::string& header, const std::string& data = "") {
  return length_bytes(header.size()) + header + data;
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + shape + "],\"data_offsets\":[" + offsets + "]}";
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{" + entry("t", dtype, shape, offsets) + "}";
}

NamedArray array_of(const std::string& name, const std::string& dtype, std::vector<int64_t> shape,
                    const std::string& data) {
  return {name, dtype, std::move(shape), data.data(), data.size()};
}

std::string data_of(const NamedArray& array) { return {static_cast<const char*>(array.data), array.bytes}; }

std::string digest_of(const std::string& bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

TEST_F(Safetensors, WritesTheBytesOfTheSpecification) {
  const float values[] = {0, 1, 2, 3, 4, 5};
  const std::string data(reinterpret_cast<const char*>(values), sizeof values);
  const std::string digest = write_safetensors(path_, {array_of("head", "F32", {2, 3}, data)});

  const std::string header = R"({"head":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";  // 60 bytes
  const std::string expected = std::string("\x40\0\0\0\0\0\0\0", 8) + header + "    " +
                               std::string("\0\0\0\0\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40\0\0\xa0\x40", 24);
  EXPECT_EQ(read_file(path_), expected);
  EXPECT_EQ(digest, digest_of(expected));
  EXPECT_EQ(names_in_folder(), std::vector<std::string>{"model.safetensors"});
}

TEST_F(Safetensors, WritesAnEmptyFileAsThreeParts) {
  write_safetensors(path_, {});
  EXPECT_EQ(read_file(path_), by_hand("{}      "));
  write_safetensors(path_, {}, {{"format", "pt"}});
  EXPECT_EQ(read_file(path_), by_hand(R"({"__metadata__":{"format":"pt"}})"));  // 32 bytes
  EXPECT_EQ(SafetensorsFile(path_).metadata().at("format"), "pt");
}

TEST_F(Safetensors, ReadsAFileWrittenByHand) {
  // Not in the order of the data, without padding, with other white space: all allowed.
  const std::string header = "{ \"b\" : {\"shape\":[2],\"data_offsets\":[1,9],\"dtype\":\"F32\"},\n" +
                             entry("a", "U8", "1", "0,1") + ",\"__metadata__\":{\"k\":\"v\"} }\r\n\t ";
  const std::string bytes = by_hand(header, "Xabcdefgh");
  put(bytes);
  const SafetensorsFile file(path_);
  ASSERT_EQ(file.arrays().size(), 2u);
  EXPECT_EQ(file.arrays()[0].name, "a");
  EXPECT_EQ(file.arrays()[0].dtype, "U8");
  EXPECT_EQ(data_of(file.arrays()[0]), "X");
  EXPECT_EQ(file.arrays()[1].name, "b");
  EXPECT_EQ(file.arrays()[1].shape, std::vector<int64_t>{2});
  EXPECT_EQ(data_of(file.arrays()[1]), "abcdefgh");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(file.arrays()[1].data) % 64, 0u);
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"k", "v"}}));
  EXPECT_EQ(file.sha256(), digest_of(bytes));
  EXPECT_EQ(file.find("b"), &file.arrays()[1]);
  EXPECT_EQ(file.find("c"), nullptr);
}

TEST_F(Safetensors, RoundTripsEveryDtypeScalarsEmptyArraysAndUnicodeNames) {
  const std::pair<const char*, std::size_t> dtypes[] = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1},
      {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},     {"I32", 4},
      {"F32", 4},  {"U64", 8}, {"I64", 8}, {"F64", 8},     {"C64", 8}};
  std::vector<std::string> data;
  data.reserve(100);  // the arrays point into it
  std::vector<NamedArray> arrays;
  std::mt19937 random(1);
  const auto add = [&](const std::string& name, const char* dtype, std::size_t size, std::vector<int64_t> shape) {
    for (const int64_t dimension : shape) size *= static_cast<std::size_t>(dimension);
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    data.push_back(bytes);
    arrays.push_back(array_of(name, dtype, std::move(shape), data.back()));
  };
  for (const auto& [dtype, size] : dtypes) {
    add(std::string(dtype) + ".matrix", dtype, size, {3, 5});
    add(std::string(dtype) + ".scalar", dtype, size, {});
    add(std::string(dtype) + ".empty", dtype, size, {4, 0, 2});
  }
  add("größe/重み/🎻 \"quoted\" \\ \n\t\x01", "F32", 4, {2});
  add("", "F32", 4, {1});
  const std::map<std::string, std::string> metadata = {
      {"step", "12"}, {"Ünï", "{\"json\": [\"in\", \"it\"]}\n"}, {"", ""}};

  const std::string digest = write_safetensors(path_, arrays, metadata);
  const std::string bytes = read_file(path_);
  const SafetensorsFile file(path_);
  EXPECT_EQ(file.arrays().size(), arrays.size());
  for (const NamedArray& array : arrays) {
    const NamedArray* found = file.find(array.name);
    ASSERT_NE(found, nullptr) << array.name;
    EXPECT_EQ(found->dtype, array.dtype);
    EXPECT_EQ(found->shape, array.shape);
    EXPECT_EQ(data_of(*found), data_of(array)) << array.name;
    if (array.bytes >= 15) {  // a matrix: long enough to be found. Aligned in the file, too.
      EXPECT_EQ(bytes.find(data_of(array)) % (array.bytes / 15), 0u) << array.name;
    }
  }
  EXPECT_EQ(file.metadata(), metadata);
  EXPECT_EQ(file.sha256(), digest);
  EXPECT_EQ(digest, digest_of(bytes));
  EXPECT_EQ(write_safetensors(folder_ / "again", arrays, metadata), digest);
}

TEST_F(Safetensors, RoundTripsDataLargerThanOnePiece) {
  std::string data(5'000'001, '\0');
  std::mt19937 random(2);
  for (char& byte : data) byte = static_cast<char>(random());
  const std::string digest = write_safetensors(path_, {array_of("large", "U8", {5'000'001}, data)});
  const SafetensorsFile file(path_);
  EXPECT_EQ(data_of(*file.find("large")), data);
  EXPECT_EQ(file.sha256(), digest);
  EXPECT_EQ(digest, digest_of(read_file(path_)));
}

TEST_F(Safetensors, AFileCanBeMoved) {
  put(by_hand(one("U8", "2", "0,2"), "ab"));
  SafetensorsFile first(path_);
  const SafetensorsFile second = std::move(first);
  EXPECT_EQ(data_of(*second.find("t")), "ab");
}

TEST_F(Safetensors, WritesInTheCurrentFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  write_safetensors("plain.safetensors", {});
  fs::current_path(before);
  EXPECT_TRUE(fs::exists(folder_ / "plain.safetensors"));
}

TEST_F(Safetensors, RefusesToWriteWhatCouldNotBeRead) {
  const std::string four = "abcd";
  const auto refusal = [&](const std::vector<NamedArray>& arrays,
                           const std::map<std::string, std::string>& metadata = {}) {
    try {
      write_safetensors(path_, arrays, metadata);
      return std::string();
    } catch (const Error& error) {
      EXPECT_TRUE(contains(error.what(), path_.string()));
      return std::string(error.what());
    }
  };
  EXPECT_TRUE(contains(refusal({array_of("x", "F33", {1}, four)}), "F33"));
  EXPECT_TRUE(contains(refusal({array_of("x", "F32", {2}, four)}), "takes 8"));
  EXPECT_TRUE(contains(refusal({array_of("x", "F32", {-1}, four)}), "[-1]"));
  EXPECT_TRUE(contains(refusal({array_of("x", "F32", {int64_t{1} << 62, 4}, four)}), "impossible shape"));
  EXPECT_TRUE(contains(refusal({{"x", "F32", {1}, nullptr, 4}}), "no data"));
  EXPECT_TRUE(contains(refusal({array_of("__metadata__", "F32", {1}, four)}), "reserves"));
  EXPECT_TRUE(contains(refusal({array_of("x", "F32", {1}, four), array_of("x", "F32", {1}, four)}), "two arrays"));
  EXPECT_TRUE(contains(refusal({array_of("\xff", "F32", {1}, four)}), "UTF-8"));
  EXPECT_TRUE(contains(refusal({}, {{"k", "\xc3"}}), "UTF-8"));
  EXPECT_TRUE(contains(refusal({array_of(std::string(100'000'000, 'x'), "F32", {1}, four)}), "header"));
  EXPECT_TRUE(names_in_folder().empty());
}

TEST_F(Safetensors, AFolderThatIsMissingIsNamed) {
  try {
    write_safetensors(folder_ / "no" / "x.safetensors", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "No such file or directory")) << error.what();
    EXPECT_TRUE(contains(error.what(), (folder_ / "no").string())) << error.what();
  }
}

TEST_F(Safetensors, ARenameThatFailsLeavesNothing) {
  fs::create_directories(path_ / "in the way");
  EXPECT_THROW(write_safetensors(path_, {}), Error);
  EXPECT_EQ(names_in_folder(), std::vector<std::string>{"model.safetensors"});
}

/// Runs `check` in a process of its own (its limits and mounts end with it). Returns its exit status.
template <typename Check>
int in_child(const Check& check) {
  const pid_t child = ::fork();
  if (child == 0) {
    int result = 99;
    try {
      result = check();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    ::_exit(result);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// 0 when writing `megabytes` over an existing file in `folder` fails with `reason` and leaves all as it was.
int check_failed_write(const fs::path& folder, int megabytes, const std::string& reason) {
  const fs::path path = folder / "model.safetensors";
  const std::string old = "the old one";
  const std::string digest = write_safetensors(path, {array_of("t", "U8", {11}, old)});
  const std::string data(static_cast<std::size_t>(megabytes) * 1'000'000, 'x');
  try {
    write_safetensors(path, {array_of("t", "U8", {static_cast<int64_t>(data.size())}, data)});
    return 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    if (!contains(error.what(), path.string()) || !contains(error.what(), reason)) return 2;
    if (!contains(error.what(), std::to_string(megabytes) + ".0 MB")) return 3;
  }
  if (SafetensorsFile(path).sha256() != digest) return 4;
  if (fs::exists(path.string() + ".tmp")) return 5;
  return 0;
}

TEST_F(Safetensors, AFailedWriteKeepsTheOldFileAndLeavesNothing) {
  EXPECT_EQ(in_child([&] {
              std::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{2'500'000, 2'500'000};
              ::setrlimit(RLIMIT_FSIZE, &limit);
              return check_failed_write(folder_, 4, "File too large");
            }),
            0);
}

TEST_F(Safetensors, AFullDiskKeepsTheOldFileAndLeavesNothing) {
  constexpr int kCannotMount = 77;
  const int result = in_child([&] {
    const std::string uid = std::to_string(::getuid());
    const std::string gid = std::to_string(::getgid());
    if (::unshare(CLONE_NEWNS) != 0) {
      if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return kCannotMount;
      std::ofstream("/proc/self/uid_map") << "0 " << uid << " 1";
      std::ofstream("/proc/self/setgroups") << "deny";
      std::ofstream("/proc/self/gid_map") << "0 " << gid << " 1";
    }
    ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (::mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=3m") != 0) return kCannotMount;
    return check_failed_write(folder_, 4, "No space left on device");
  });
  if (result == kCannotMount) GTEST_SKIP() << "no right to mount a small file system here";
  EXPECT_EQ(result, 0);
}

TEST_F(Safetensors, RefusesWhatIsNoFile) {
  EXPECT_THROW(SafetensorsFile{path_}, Error);    // missing
  EXPECT_THROW(SafetensorsFile{folder_}, Error);  // a folder
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THROW(SafetensorsFile{path_}, Error);  // a pipe without a writer
}

TEST_F(Safetensors, RefusesAWrongHeaderLength) {
  const std::string header = one("U8", "2", "0,2");
  EXPECT_EQ(complaint(by_hand(header, "ab")), "");
  EXPECT_TRUE(contains(complaint(""), "only 0 bytes"));
  EXPECT_TRUE(contains(complaint("1234567"), "only 7 bytes"));
  EXPECT_TRUE(contains(complaint(length_bytes(0)), "does not begin with {"));
  EXPECT_TRUE(contains(complaint(length_bytes(header.size() + 3) + header + "ab"), "truncated"));
  EXPECT_TRUE(contains(complaint(length_bytes(100'000'001) + header + "ab"), "100.0 MB"));
  EXPECT_TRUE(contains(complaint(length_bytes(~uint64_t{0}) + header + "ab"), "announce"));
  EXPECT_TRUE(contains(complaint(length_bytes(~uint64_t{0} - 7) + header + "ab"), "announce"));
  EXPECT_TRUE(contains(complaint(length_bytes(header.size() - 1) + header + "ab"), "not JSON"));
}

TEST_F(Safetensors, RefusesHeadersThatAreNotJson) {
  EXPECT_TRUE(contains(complaint(by_hand("[]")), "does not begin with {"));
  EXPECT_TRUE(contains(complaint(by_hand(" {}")), "does not begin with {"));
  EXPECT_TRUE(contains(complaint(by_hand("\xef\xbb\xbf{}")), "does not begin with {"));
  EXPECT_TRUE(contains(complaint(by_hand("{")), "not JSON"));
  EXPECT_TRUE(contains(complaint(by_hand("{}}")), "not JSON"));
  EXPECT_TRUE(contains(complaint(by_hand("{} x")), "not JSON"));
  EXPECT_TRUE(contains(complaint(by_hand("{}{}")), "not JSON"));
  EXPECT_TRUE(contains(complaint(by_hand("{/**/}")), "not JSON"));
  EXPECT_TRUE(contains(complaint(by_hand("{'t':1}")), "not JSON"));
  EXPECT_TRUE(contains(complaint(by_hand(std::string("{}\0\0", 4))), "zero byte"));
  EXPECT_TRUE(contains(complaint(by_hand(std::string("{}\0[", 4))), "zero byte"));
  EXPECT_TRUE(contains(complaint(by_hand("{" + entry("\xff", "U8", "0", "0,0") + "}")), "not JSON"));
  EXPECT_TRUE(contains(complaint(by_hand("{" + entry("\xed\xa0\x80", "U8", "0", "0,0") + "}")), "not JSON"));
  EXPECT_TRUE(contains(complaint(by_hand("{" + entry("\\ud800", "U8", "0", "0,0") + "}")), "not JSON"));
}

TEST_F(Safetensors, RefusesHeadersOfAnotherForm) {
  const char* const headers[] = {
      R"({"t":1})",
      R"({"t":null})",
      R"({"t":[]})",
      R"({"t":"x"})",
      R"({"t":{}})",
      R"({"t":{"dtype":"U8","shape":[0]}})",
      R"({"t":{"dtype":"U8","data_offsets":[0,0]}})",
      R"({"t":{"shape":[0],"data_offsets":[0,0]}})",
      R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"more":1}})",
      R"({"t":{"dtype":8,"shape":[0],"data_offsets":[0,0]}})",
      R"({"t":{"dtype":["U8"],"shape":[0],"data_offsets":[0,0]}})",
      R"({"t":{"dtype":"U8","shape":0,"data_offsets":[0,0]}})",
      R"({"t":{"dtype":"U8","shape":"0","data_offsets":[0,0]}})",
      R"({"t":{"dtype":"U8","shape":{"0":0},"data_offsets":[0,0]}})",
      R"({"t":{"dtype":"U8","shape":[[0]],"data_offsets":[0,0]}})",
      R"({"t":{"dtype":"U8","shape":[0.0],"data_offsets":[0,0]}})",
      R"({"t":{"dtype":"U8","shape":[true],"data_offsets":[0,0]}})",
      R"({"t":{"dtype":"U8","shape":[null],"data_offsets":[0,0]}})",
      R"({"t":{"dtype":"U8","shape":["0"],"data_offsets":[0,0]}})",
      R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[]}})",
      R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0]}})",
      R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0,0]}})",
      R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[-1,-1]}})",
      R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0,1e0]}})",
      R"({"__metadata__":null})",
      R"({"__metadata__":"x"})",
      R"({"__metadata__":["x"]})",
      R"({"__metadata__":{"k":1}})",
      R"({"__metadata__":{"k":null}})",
      R"({"__metadata__":{"k":{"k":"v"}}})",
  };
  for (const char* header : headers) EXPECT_NE(complaint(by_hand(header)), "") << header;
}

TEST_F(Safetensors, RefusesKeysThatComeTwice) {
  const std::string t = entry("t", "U8", "0", "0,0");
  EXPECT_TRUE(contains(complaint(by_hand("{" + t + "," + t + "}")), "\"t\" comes twice"));
  EXPECT_TRUE(contains(complaint(by_hand("{" + t + "," + entry("\\u0074", "U8", "0", "0,0") + "}")), "comes twice"));
  EXPECT_TRUE(contains(complaint(by_hand(R"({"__metadata__":{},"__metadata__":{}})")), "comes twice"));
  EXPECT_TRUE(contains(complaint(by_hand(R"({"__metadata__":{"k":"a","k":"b"}})")), "comes twice"));
  EXPECT_TRUE(contains(complaint(by_hand(R"({"t":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})")),
                       "comes twice"));
  EXPECT_TRUE(contains(complaint(by_hand(R"({"t":{"dtype":"U8","shape":[],"shape":[1],"data_offsets":[0,1]}})", "x")),
                       "comes twice"));
}

TEST_F(Safetensors, RefusesImpossibleShapes) {
  EXPECT_TRUE(contains(complaint(by_hand(one("U8", "-1", "0,1"), "x")), "-1"));
  EXPECT_NE(complaint(by_hand(one("U8", "-0", "0,0"))), "");
  EXPECT_NE(complaint(by_hand(one("I32", "2,18446744073709551614", "0,16"), std::string(16, 'x'))), "");
  EXPECT_NE(complaint(by_hand(one("I32", "18446744073709551616", "0,16"), std::string(16, 'x'))), "");
  EXPECT_NE(complaint(by_hand(one("I32", "1e999", "0,16"), std::string(16, 'x'))), "");
  // 2^32 · 2^32 = 2^64, which is 0 to someone who multiplies without care.
  EXPECT_TRUE(contains(complaint(by_hand(one("U8", "4294967296,4294967296", "0,0"))), "impossible shape"));
  EXPECT_TRUE(contains(complaint(by_hand(one("I64", "2305843009213693952", "0,0"))), "impossible shape"));
  EXPECT_TRUE(
      contains(complaint(by_hand(one("I64", "0,9223372036854775807,9223372036854775807", "0,0"))), "impossible shape"));
}

TEST_F(Safetensors, RefusesWrongSizesAndOffsets) {
  EXPECT_TRUE(contains(complaint(by_hand(one("F33", "1", "0,4"), "abcd")), "F33"));
  EXPECT_TRUE(contains(complaint(by_hand(one("f32", "1", "0,4"), "abcd")), "f32"));
  EXPECT_TRUE(contains(complaint(by_hand(one("F32", "2", "0,4"), "abcd")), "takes 8"));
  EXPECT_TRUE(contains(complaint(by_hand(one("F32", "", "0,3"), "abc")), "takes 4"));
  EXPECT_TRUE(contains(complaint(by_hand(one("F32", "1", "4,0"), "abcd")), "before it begins"));
  EXPECT_TRUE(contains(complaint(by_hand(one("F32", "1", "1,5"), "xabcd")), "gap"));
  EXPECT_TRUE(contains(complaint(by_hand(one("F32", "1", "0,4"), "abc")), "truncated"));
  EXPECT_TRUE(contains(complaint(by_hand(one("F32", "1", "0,4"), "abcde")), "1 bytes at the end"));
  EXPECT_TRUE(contains(complaint(by_hand("{}", "x")), "1 bytes at the end"));
  EXPECT_NE(complaint(by_hand(one("U8", "1", "18446744073709551615,0"), "x")), "");
  EXPECT_NE(complaint(by_hand(one("U8", "9223372036854775807", "0,9223372036854775807"), "x")), "");

  const auto two = [&](const std::string& first, const std::string& second) {
    return complaint(by_hand("{" + entry("a", "U8", "2", first) + "," + entry("b", "U8", "2", second) + "}", "abcd"));
  };
  EXPECT_EQ(two("0,2", "2,4"), "");
  EXPECT_EQ(two("2,4", "0,2"), "");
  EXPECT_TRUE(contains(two("0,2", "0,2"), "overlaps"));
  EXPECT_TRUE(contains(two("0,2", "1,3"), "overlaps"));
  EXPECT_TRUE(contains(two("0,2", "3,5"), "gap"));
  EXPECT_TRUE(contains(two("1,3", "3,5"), "gap"));
}

TEST_F(Safetensors, EmptyArraysMayShareTheirPlace) {
  EXPECT_EQ(complaint(by_hand("{" + entry("d", "U8", "0", "2,2") + "," + entry("a", "U8", "2", "0,2") + "," +
                                  entry("b", "F32", "0,3", "2,2") + "," + entry("c", "U8", "0", "0,0") + "}",
                              "ab")),
            "");
  EXPECT_NE(complaint(by_hand("{" + entry("a", "U8", "2", "0,2") + "," + entry("b", "U8", "0", "1,1") + "}", "ab")),
            "");
}

TEST_F(Safetensors, RefusesDeepAndLongNonsenseAtOnce) {
  EXPECT_NE(complaint(by_hand("{\"t\":" + std::string(1'000'000, '['))), "");
  EXPECT_NE(complaint(by_hand("{\"t\":" + std::string(1'000'000, '9') + "}")), "");
  const std::string text = complaint(by_hand("{\"" + std::string(1'000'000, 'n') + "\":1}"));
  EXPECT_NE(text, "");
  EXPECT_LT(text.size(), 1000u);
  const std::string escape = complaint(by_hand("{\"\\u001b[2J\":1}"));
  EXPECT_EQ(escape.find('\x1b'), std::string::npos);  // nothing a terminal would obey
}

TEST_F(Safetensors, EveryTruncationIsRefused) {
  const std::string bytes = by_hand(
      "{\"__metadata__\":{\"a\":\"b\"}," + entry("t", "F32", "2", "0,8") + "," + entry("u", "U8", "1", "8,9") + "}",
      "abcdefghi");
  EXPECT_EQ(complaint(bytes), "");
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_NE(complaint(bytes.substr(0, length)), "") << length;
  }
}

TEST_F(Safetensors, RandomDamageIsRefusedOrHarmless) {
  const std::string bytes = by_hand("{\"__metadata__\":{\"a\":\"b\"}," + entry("t", "F32", "2,1", "0,8") + "," +
                                        entry("u", "U8", "1", "8,9") + "," + entry("v", "I64", "0", "9,9") + "}",
                                    "abcdefghi");
  const std::string alphabet = "{}[],:\"\\0123456789-+.eEnutf \n" + std::string("\0\x7f\xff\xc3", 4);
  std::mt19937 random(3);
  int accepted = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string damaged = bytes;
    const int changes = 1 + static_cast<int>(random() % 3);
    for (int c = 0; c < changes; ++c) {
      const std::size_t at = random() % damaged.size();
      const char byte = alphabet[random() % alphabet.size()];
      switch (random() % 3) {
        case 0:
          damaged[at] = byte;
          break;
        case 1:
          damaged.insert(at, 1, byte);
          damaged[0] = static_cast<char>(damaged[0] + 1);  // so that the header still ends where it did
          break;
        default:
          damaged.erase(at, 1);
          damaged[0] = static_cast<char>(damaged[0] - 1);
      }
    }
    put(damaged);
    try {
      const SafetensorsFile file(path_);
      ++accepted;
      std::size_t total = 0;
      for (const NamedArray& array : file.arrays()) total += data_of(array).size();  // touches all of it
      EXPECT_LE(total, damaged.size());
    } catch (const Error&) {
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 4000);
}

}  // namespace
}  // namespace tutti
