#include "base/cpu_times.h"

#include <sstream>

#include "base/files.h"

namespace tutti {

CpuTimes parse_cpu_times(const std::string& proc_stat) {
  std::istringstream line(proc_stat);
  std::string cpu;
  line >> cpu;
  CpuTimes times;
  double value = 0;
  for (int field = 0; field < 8 && line >> value; ++field) {  // user nice system idle iowait irq softirq steal
    times.all += value;
    if (field == 3 || field == 4) times.idle += value;
    if (field == 7) times.steal = value;
  }
  return times;
}

CpuTimes read_cpu_times() { return parse_cpu_times(read_file("/proc/stat")); }

MachineLoad load_between(const CpuTimes& begin, const CpuTimes& end) {
  const double all = end.all - begin.all;
  if (all <= 0) return {};
  return {100 * (end.steal - begin.steal) / all, 100 * (end.idle - begin.idle) / all};
}

}  // namespace tutti
