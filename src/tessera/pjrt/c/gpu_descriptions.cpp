#include "tessera/pjrt/c/gpu_descriptions.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "tessera/base/error.h"

namespace tessera::pjrt::c {

namespace {

/// A file's bytes as memory: plugins are larger than what one wants to copy.
class MappedPlugin {
 public:
  explicit MappedPlugin(const std::string& file) {
    const int opened = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat about {};
    if (opened >= 0 && fstat(opened, &about) == 0 && about.st_size > 0) {
      size_ = static_cast<std::size_t>(about.st_size);
      data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, opened, 0);
    }
    const int reason = errno;
    if (opened >= 0) close(opened);
    if (data_ == MAP_FAILED) {
      fail(Fault::Resource, file, ": cannot be read: ", std::strerror(reason), "; check its path");
    }
  }
  MappedPlugin(const MappedPlugin&) = delete;
  ~MappedPlugin() { munmap(data_, size_); }
  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  void* data_ = MAP_FAILED;
  std::size_t size_ = 0;
};

/// What stands between quotes behind the last `key` of `text`; empty where it is not there.
std::string_view quoted(std::string_view text, std::string_view key) {
  const std::size_t at = text.rfind(key);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = at + key.size();
  const std::size_t end = text.find('"', begin);
  return end == std::string_view::npos ? std::string_view() : text.substr(begin, end - begin);
}

/// The number behind `key`.
std::optional<std::int64_t> number(std::string_view text, std::string_view key) {
  const std::size_t found = text.find(key);
  if (found == std::string_view::npos) return std::nullopt;
  std::int64_t out = 0;
  const char* const begin = text.data() + found + key.size();
  const auto [end, problem] = std::from_chars(begin, text.data() + text.size(), out);
  return problem == std::errc() && out > 0 ? std::optional(out) : std::nullopt;
}

}  // namespace

std::vector<GpuDescription> find_gpu_descriptions(std::string_view bytes) {
  constexpr std::string_view kMark = "\ngpu_device_info {\n";
  constexpr std::size_t kMost = 1 << 16;  // bytes of a description
  std::vector<GpuDescription> out;
  for (std::size_t at = bytes.find(kMark); at != std::string_view::npos;
       at = bytes.find(kMark, at + kMark.size())) {
    const std::size_t end = bytes.find('\0', at);
    const std::size_t before = bytes.rfind('\0', at);
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    if (end == std::string_view::npos || end - begin > kMost) continue;
    const std::string_view text = bytes.substr(begin, end - begin);
    const std::string_view name = quoted(text, "\ndevice_description_str: \"");
    if (name.empty()) continue;
    out.push_back({std::string(name), std::string(quoted(text, "\nplatform_name: \"")),
                   std::string(text), number(text, "\n  device_memory_size: ")});
  }
  const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
  std::sort(out.begin(), out.end(), by_name);
  return out;
}

std::vector<GpuDescription> gpu_descriptions(const std::string& file) {
  return find_gpu_descriptions(MappedPlugin(file).bytes());
}

}  // namespace tessera::pjrt::c
