#pragma once

#include <string>

namespace tutti {

/// The share of time that the machine under this virtual one gave to others, and how much was idle, in percent.
struct MachineLoad {
  double steal = 0;
  double idle = 0;
};

/// One moment's counters; see /proc/stat.
struct CpuTimes {
  double steal = 0, idle = 0, all = 0;
};
CpuTimes parse_cpu_times(const std::string& proc_stat);
CpuTimes read_cpu_times();
MachineLoad load_between(const CpuTimes& begin, const CpuTimes& end);

}  // namespace tutti
