#pragma once

namespace tutti {

/// While one is alive, models on this thread compute with torch's own operations alone, which tracers can follow. They
/// are slower, and their results agree within rounding.
class PlainOperations {
 public:
  PlainOperations() : before_(is_on()) { is_on() = true; }
  ~PlainOperations() { is_on() = before_; }
  PlainOperations(const PlainOperations&) = delete;
  PlainOperations& operator=(const PlainOperations&) = delete;

  static bool& is_on() {
    static thread_local bool on = false;
    return on;
  }

 private:
  bool before_;
};

}  // namespace tutti
