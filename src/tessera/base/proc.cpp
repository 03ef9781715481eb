#include "tessera/base/proc.h"

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

}  // namespace tessera
