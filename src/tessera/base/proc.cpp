#include "tessera/base/proc.h"

#include <algorithm>
#include <fstream>
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

std::int64_t free_memory_bytes() {
  const std::int64_t free = proc_bytes("/proc/meminfo", "MemAvailable:");
  const auto most = number_in("/sys/fs/cgroup/memory.max"),
             taken = number_in("/sys/fs/cgroup/memory.current");
  if (!most || !taken) return free;
  return std::min(free, std::max<std::int64_t>(*most - *taken, 1));
}

}  // namespace tessera
