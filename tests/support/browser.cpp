#include "support/browser.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>
#include <utility>

#include "base/files.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kPatienceMs = 60'000;

std::string find_browser() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    for (const char* name : {"chromium", "chromium-browser", "google-chrome"})
      if (::access((folder + "/" + name).c_str(), X_OK) == 0) return folder + "/" + name;
  return "";
}

std::string decode_base64(const std::string& text) {
  std::string bytes;
  unsigned bits = 0;
  int count = 0;
  for (const char c : text) {
    unsigned value = 0;
    if (c >= 'A' && c <= 'Z')
      value = static_cast<unsigned>(c - 'A');
    else if (c >= 'a' && c <= 'z')
      value = static_cast<unsigned>(c - 'a') + 26;
    else if (c >= '0' && c <= '9')
      value = static_cast<unsigned>(c - '0') + 52;
    else if (c == '+' || c == '/')
      value = c == '+' ? 62 : 63;
    else
      continue;  // padding
    bits = bits << 6 | value;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  return bytes;
}

/// Becomes the browser: it reads commands from descriptor 3 and answers on 4.
[[noreturn]] void become_browser(const std::string& program, const std::string& profile, int commands, int answers) {
  // Out of the way first, in case one of them is 3 or 4 itself.
  const int in = ::fcntl(commands, F_DUPFD, 10), out = ::fcntl(answers, F_DUPFD, 10);
  ::dup2(in, 3);
  ::dup2(out, 4);
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (const int stream : {0, 1, 2}) ::dup2(nowhere, stream);
  ::setpgid(0, 0);
  ::setenv("TMPDIR", profile.c_str(), 1);  // what it leaves behind goes with its profile
  std::vector<std::string> words = {program,
                                    "--headless=new",
                                    "--remote-debugging-pipe",
                                    "--user-data-dir=" + profile,
                                    "--no-first-run",
                                    "--disable-gpu",
                                    "--disable-dev-shm-usage",
                                    "--hide-scrollbars",
                                    "--disable-background-networking",
                                    "--disable-component-update",
                                    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                                    "about:blank"};
  if (::geteuid() == 0) words.insert(words.begin() + 1, "--no-sandbox");  // its sandbox refuses root
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  ::_exit(127);
}

}  // namespace

std::string Browser::why_not() {
  return find_browser().empty() ? "there is no Chromium here; the package chromium has it" : "";
}

Browser::Browser() {
  std::string folder = fs::temp_directory_path() / "tutti-browser-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) throw Error("cannot make {}: {}", folder, std::strerror(errno));
  profile_ = folder;
  ::signal(SIGPIPE, SIG_IGN);  // a browser that died is an error of the next call
  std::array<int, 2> commands{}, answers{};
  if (::pipe2(commands.data(), O_CLOEXEC) != 0 || ::pipe2(answers.data(), O_CLOEXEC) != 0)
    throw Error("cannot make pipes: {}", std::strerror(errno));
  const std::string program = find_browser();
  process_ = ::fork();
  if (process_ == 0) become_browser(program, folder, commands[0], answers[1]);
  ::close(commands[0]);
  ::close(answers[1]);
  to_ = commands[1];
  from_ = answers[0];
  const json target = call("Target.createTarget", {{"url", "about:blank"}});
  session_ = call("Target.attachToTarget", {{"targetId", target.at("targetId")}, {"flatten", true}}).at("sessionId");
  for (const char* domain : {"Page.enable", "Runtime.enable", "Network.enable", "Log.enable"}) call(domain);
}

Browser::~Browser() {
  ::close(to_);
  ::close(from_);
  if (process_ > 0) {
    ::kill(-process_, SIGKILL);  // its own group: its helpers too
    ::waitpid(process_, nullptr, 0);
  }
  remove_tree(profile_);
}

json Browser::receive() {
  while (true) {
    const std::size_t end = pending_.find('\0');
    if (end != std::string::npos) {
      json message = json::parse(pending_.substr(0, end));
      pending_.erase(0, end + 1);
      return message;
    }
    pollfd ready = {from_, POLLIN, 0};
    if (::poll(&ready, 1, kPatienceMs) <= 0) throw Error("the browser said nothing for {} s", kPatienceMs / 1000);
    std::array<char, 65536> buffer;
    const ssize_t got = ::read(from_, buffer.data(), buffer.size());
    if (got <= 0) throw Error("the browser has ended");
    pending_.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

void Browser::note(const json& event) {
  const std::string method = event.value("method", "");
  if (method == "Page.loadEventFired") is_loaded_ = true;
  if (method == "Network.requestWillBeSent") {
    const std::string url = event.at("params").at("request").at("url");
    if (url.rfind("file:", 0) != 0 && url.rfind("data:", 0) != 0 && url != "about:blank") requests_.push_back(url);
  }
  if (method == "Runtime.exceptionThrown") complaints_.push_back(event.at("params").at("exceptionDetails").dump());
  if (method == "Log.entryAdded" && event.at("params").at("entry").at("level") == "error")
    complaints_.push_back(event.at("params").at("entry").at("text"));
}

json Browser::call(const std::string& method, const json& parameters) {
  const int id = ++calls_;
  json message = {{"id", id}, {"method", method}, {"params", parameters}};
  if (!session_.empty()) message["sessionId"] = session_;
  const std::string text = message.dump() + '\0';
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t wrote = ::write(to_, text.data() + sent, text.size() - sent);
    if (wrote <= 0) throw Error("the browser has ended");
    sent += static_cast<std::size_t>(wrote);
  }
  while (true) {
    const json answer = receive();
    if (answer.value("id", 0) != id) {
      note(answer);
      continue;
    }
    if (answer.contains("error")) throw Error("{}: {}", method, answer.at("error").dump());
    return answer.at("result");
  }
}

void Browser::look_as(const Look& look) {
  call("Emulation.setDeviceMetricsOverride", {{"width", look.width},
                                              {"height", look.height},
                                              {"deviceScaleFactor", look.is_phone ? 2 : 1},
                                              {"mobile", look.is_phone}});
  call("Emulation.setTouchEmulationEnabled", {{"enabled", look.is_phone}});
  call("Emulation.setEmulatedMedia",
       {{"features", {{{"name", "prefers-color-scheme"}, {"value", look.is_dark ? "dark" : "light"}}}}});
}

void Browser::open(const fs::path& page) { open_url("file://" + fs::absolute(page).string()); }

void Browser::open_url(const std::string& url) {
  is_loaded_ = false;
  call("Page.navigate", {{"url", url}});
  while (!is_loaded_) note(receive());
}

json Browser::evaluate(const std::string& expression) {
  const json answer =
      call("Runtime.evaluate", {{"expression", expression}, {"returnByValue", true}, {"awaitPromise", true}});
  if (answer.contains("exceptionDetails")) throw Error("{}: {}", expression, answer.at("exceptionDetails").dump());
  return answer.at("result").value("value", json());
}

void Browser::mouse(const char* type, double x, double y, const json& more) {
  json event = {{"type", type}, {"x", x}, {"y", y}};
  event.update(more);
  call("Input.dispatchMouseEvent", event);
}

void Browser::move_mouse(double x, double y) { mouse("mouseMoved", x, y, json::object()); }

void Browser::click(double x, double y) {
  move_mouse(x, y);
  for (const char* type : {"mousePressed", "mouseReleased"}) mouse(type, x, y, {{"button", "left"}, {"clickCount", 1}});
}

void Browser::turn_wheel(double x, double y, double pixels) {
  mouse("mouseWheel", x, y, {{"deltaX", 0}, {"deltaY", pixels}});
}

void Browser::drag(double from_x, double from_y, double to_x, double to_y) {
  move_mouse(from_x, from_y);
  mouse("mousePressed", from_x, from_y, {{"button", "left"}, {"clickCount", 1}});
  for (const double share : {0.3, 0.6, 1.0})
    mouse("mouseMoved", from_x + share * (to_x - from_x), from_y + share * (to_y - from_y),
          {{"button", "left"}, {"buttons", 1}});
  mouse("mouseReleased", to_x, to_y, {{"button", "left"}, {"clickCount", 1}});
}

void Browser::pinch(double x, double y, double from, double to) {
  const auto touch = [&](const char* type, double apart) {
    json fingers = json::array();
    if (apart > 0)
      for (const int side : {-1, 1}) fingers.push_back({{"x", x + side * apart / 2}, {"y", y}, {"id", side + 1}});
    call("Input.dispatchTouchEvent", {{"type", type}, {"touchPoints", fingers}});
  };
  touch("touchStart", from);
  for (const double share : {0.25, 0.5, 0.75, 1.0}) touch("touchMove", from + share * (to - from));
  touch("touchEnd", 0);
}

void Browser::press(const std::string& key) {
  static const std::vector<std::pair<std::string, int>> kCodes = {
      {"Tab", 9},        {"Enter", 13},   {"Escape", 27},     {" ", 32},        {"Home", 36},
      {"ArrowLeft", 37}, {"ArrowUp", 38}, {"ArrowRight", 39}, {"ArrowDown", 40}};
  json event = {{"type", "keyDown"}, {"key", key}};
  for (const auto& [name, code] : kCodes)
    if (name == key) event["windowsVirtualKeyCode"] = code;
  if (key == "Enter") event["text"] = "\r";
  if (key.size() == 1) event["text"] = key;
  call("Input.dispatchKeyEvent", event);
  event["type"] = "keyUp";
  event.erase("text");
  call("Input.dispatchKeyEvent", event);
}

void Browser::type(const std::string& text) { call("Input.insertText", {{"text", text}}); }

void Browser::take_picture(const fs::path& png, bool whole_page) {
  const json answer = call("Page.captureScreenshot", {{"format", "png"}, {"captureBeyondViewport", whole_page}});
  write_file_atomically(png, decode_base64(answer.at("data")));
}

void Browser::print(const fs::path& pdf) {
  const json answer = call("Page.printToPDF", {{"preferCSSPageSize", true}, {"printBackground", false}});
  write_file_atomically(pdf, decode_base64(answer.at("data")));
}

}  // namespace tutti
