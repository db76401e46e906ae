#include "data/download.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "base/sha256.h"
#include "data/idx_files.h"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Serves one content at every address of 127.0.0.1, until it is destroyed.
class FileServer {
 public:
  FileServer(std::string content, bool knows_ranges) : content_(std::move(content)), knows_ranges_(knows_ranges) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 8) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw Error("cannot listen on 127.0.0.1");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~FileServer() {
    ::shutdown(listener_, SHUT_RDWR);  // accept() returns
    thread_.join();
    ::close(listener_);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/file"; }
  /// First byte asked for by each request. Read it when no download runs.
  const std::vector<size_t>& starts() const { return starts_; }

 private:
  void serve() {
    while (true) {
      const int client = ::accept(listener_, nullptr, nullptr);
      if (client < 0) return;
      std::string request(4096, '\0');
      request.resize(static_cast<size_t>(std::max<ssize_t>(::recv(client, request.data(), request.size(), 0), 0)));
      const size_t range = request.find("Range: bytes=");
      const size_t start = range == std::string::npos ? 0 : std::stoul(request.substr(range + 13));
      starts_.push_back(start);
      const std::string answer = this->answer(start);
      ::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
      ::close(client);
    }
  }
  std::string answer(size_t start) const {
    const std::string length = "Connection: close\r\nContent-Length: ";
    if (start == 0 || !knows_ranges_)
      return "HTTP/1.1 200 OK\r\n" + length + std::to_string(content_.size()) + "\r\n\r\n" + content_;
    if (start >= content_.size()) return "HTTP/1.1 416 Range Not Satisfiable\r\n" + length + "0\r\n\r\n";
    const std::string range =
        std::to_string(start) + "-" + std::to_string(content_.size() - 1) + "/" + std::to_string(content_.size());
    return "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes " + range + "\r\n" + length +
           std::to_string(content_.size() - start) + "\r\n\r\n" + content_.substr(start);
  }

  const std::string content_;
  const bool knows_ranges_;
  const int listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int port_ = 0;
  std::vector<size_t> starts_;
  std::thread thread_;  // last: it uses the above
};

class Downloads : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("curl --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "the program curl is not installed";
    setenv("no_proxy", "127.0.0.1", 1);
    Sha256 hash;
    hash.update(content_);
    sha256_ = hash.hex();
    to_ = folder_.path() / "data/set/file";
  }
  void begin_with(const std::string& content) const {
    fs::create_directories(to_.parent_path());
    folder_.write("data/set/file.part", content);
  }
  bool is_complete() const { return read_file(to_) == content_ && !fs::exists(to_.string() + ".part"); }

  const std::string content_ = std::string(100'000, 'a') + "the end";
  std::string sha256_;
  TempFolder folder_;
  fs::path to_;
};

TEST_F(Downloads, GetTheirNameWhenTheyAreComplete) {
  FileServer server(content_, true);
  download({server.url(), to_, sha256_});
  EXPECT_TRUE(is_complete());
}

TEST_F(Downloads, GoOnWhereTheyWereInterrupted) {
  FileServer server(content_, true);
  begin_with(content_.substr(0, 60'000));
  download({server.url(), to_, sha256_});
  EXPECT_TRUE(is_complete());
  EXPECT_THAT(server.starts(), ElementsAre(60'000));
}

TEST_F(Downloads, NeedNoServerIfThePartIsTheWhole) {
  begin_with(content_);
  download({"http://127.0.0.1:1/file", to_, sha256_});
  EXPECT_TRUE(is_complete());
}

TEST_F(Downloads, StartAgainWhereAServerCannotGoOn) {
  FileServer server(content_, false);
  begin_with(content_.substr(0, 60'000));
  download({server.url(), to_, sha256_});
  EXPECT_TRUE(is_complete());
}

TEST_F(Downloads, StartAgainAfterAPartOfSomethingElse) {
  FileServer server(content_, true);
  begin_with("something else");
  download({server.url(), to_, sha256_});
  EXPECT_TRUE(is_complete());
  begin_with(content_ + " and more");
  fs::remove(to_);
  download({server.url(), to_, sha256_});
  EXPECT_TRUE(is_complete());
}

TEST_F(Downloads, AreNotKeptIfTheirChecksumIsWrong) {
  FileServer server("another file", true);
  EXPECT_THAT(error_text([&] {
                download({server.url(), to_, sha256_});
              }),
              AllOf(HasSubstr(server.url()), HasSubstr("SHA-256"), HasSubstr(sha256_)));
  EXPECT_FALSE(fs::exists(to_));
  EXPECT_FALSE(fs::exists(to_.string() + ".part"));
}

TEST_F(Downloads, SayWhichAddressCannotBeReachedAndKeepThePart) {
  begin_with("begun");
  EXPECT_THAT(error_text([&] {
                download({"http://127.0.0.1:1/file", to_, sha256_});
              }),
              AllOf(HasSubstr("cannot fetch http://127.0.0.1:1/file"), HasSubstr("proxy")));
  EXPECT_EQ(read_file(to_.string() + ".part"), "begun");
}

TEST_F(Downloads, GiveAServerUpThatSendsNothingMore) {
  // It takes connections, which wait in its queue for ever.
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener, 8), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/file";
  EXPECT_THAT(error_text([&] {
                download({url, to_, sha256_, /*stall_seconds=*/1});
              }),
              AllOf(HasSubstr(url), HasSubstr("sends nothing for 1 s")));
  ::close(listener);
}

}  // namespace
}  // namespace tutti::test
