#pragma once

#include <sys/types.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tutti {

/// Chromium without a window, led through its DevTools protocol over two pipes: no port, no other library. Opens files
/// and behaves as a person's hands and eyes would. Throws Error when the browser says no or nothing for a minute.
class Browser {
 public:
  /// Why there is no browser here; empty if there is one.
  static std::string why_not();

  Browser();
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  struct Look {
    int width = 1280, height = 900;
    bool is_dark = false, is_phone = false;
  };
  void look_as(const Look& look);
  /// Opens a page and waits until it is there with its scripts run.
  void open(const std::filesystem::path& page);
  /// The same with a page of a server on 127.0.0.1; no other machine is reached.
  void open_url(const std::string& url);

  /// The value of a JavaScript expression; a promise is waited for.
  nlohmann::json evaluate(const std::string& expression);
  void move_mouse(double x, double y);
  void click(double x, double y);
  /// Turns the wheel at a place; positive is down.
  void turn_wheel(double x, double y, double pixels);
  /// Presses at one place, moves to another and lets go.
  void drag(double from_x, double from_y, double to_x, double to_y);
  /// Two fingers, `from` pixels apart around a place, that end `to` pixels apart.
  void pinch(double x, double y, double from, double to);
  /// A key by its name ("Tab", "Enter", "ArrowLeft", "+").
  void press(const std::string& key);
  void type(const std::string& text);

  void take_picture(const std::filesystem::path& png, bool whole_page = false);
  void print(const std::filesystem::path& pdf);

  /// Addresses that the page asked for other than its own file.
  const std::vector<std::string>& requests() const { return requests_; }
  /// Uncaught exceptions and what the console showed as an error.
  const std::vector<std::string>& complaints() const { return complaints_; }

  /// A command of the protocol, sent to the page.
  nlohmann::json call(const std::string& method, const nlohmann::json& parameters = nlohmann::json::object());

 private:
  nlohmann::json receive();
  void note(const nlohmann::json& event);
  void mouse(const char* type, double x, double y, const nlohmann::json& more);

  pid_t process_ = -1;
  int to_ = -1, from_ = -1;
  int calls_ = 0;
  bool is_loaded_ = false;
  std::string session_, pending_;
  std::filesystem::path profile_;
  std::vector<std::string> requests_, complaints_;
};

}  // namespace tutti
