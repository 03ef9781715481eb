#include "tessera/base/proc.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

#include "tessera/base/text.h"

namespace tessera {

namespace {

/// The number that a file holds; none: no such file, or a word ("max").
std::optional<std::int64_t> number_in(const std::string& file) {
  std::int64_t number = 0;
  return std::ifstream(file) >> number ? std::optional(number) : std::nullopt;
}

}  // namespace

std::int64_t proc_bytes(const std::string& file, std::string_view key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (starts_with(line, key)) return std::stoll(line.substr(key.size())) * 1024;
  }
  return 0;
}

std::int64_t free_of_group(const std::string& folder) {
  const auto most = number_in(folder + "/memory.max"),
             taken = number_in(folder + "/memory.current");
  if (!most || !taken) return std::numeric_limits<std::int64_t>::max();
  std::int64_t files = 0;  // read or written, and given up when memory is wanted
  std::ifstream stat(folder + "/memory.stat");
  std::int64_t bytes = 0;
  for (std::string key; stat >> key >> bytes;)
    if (key == "active_file" || key == "inactive_file") files += bytes;
  return std::max<std::int64_t>(*most - *taken + files, 1);
}

std::int64_t free_memory_bytes() {
  std::int64_t out = proc_bytes("/proc/meminfo", "MemAvailable:");
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!starts_with(line, "0::/")) continue;  // of version 2; a group is also held to its parents'
    for (std::string path = line.substr(3);; path.resize(path.rfind('/'))) {
      out = std::min(out, free_of_group("/sys/fs/cgroup" + path));
      if (path.empty() || path.rfind('/') == std::string::npos) break;
    }
  }
  return out;
}

std::string processor_name() {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t value = line.find(": ");
    if (starts_with(line, "model name") && value != std::string::npos)
      return line.substr(value + 2);
  }
  return "";
}

CoreSeconds core_seconds() {
  // Of the line "cpu": user, nice, system, idle, waiting for a disk, interrupts (two), stolen.
  constexpr int kIdle = 3, kWaiting = 4, kColumns = 8;
  const auto per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  CoreSeconds out;
  std::ifstream stat("/proc/stat");
  std::string key;
  stat >> key;
  double ticks = 0;
  for (int i = 0; i < kColumns && stat >> ticks; ++i) {
    out.all += ticks / per_second;
    if (i != kIdle && i != kWaiting) out.worked += ticks / per_second;
  }
  return out;
}

double load_average() {
  double out = 0;
  std::ifstream("/proc/loadavg") >> out;
  return out;
}

}  // namespace tessera
