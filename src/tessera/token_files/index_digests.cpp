#include "tessera/token_files/index_digests.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"

namespace tessera {

namespace {

std::string hash_of_file(const std::string& path) {
  constexpr std::int64_t kAtATime = 1 << 20;  // bytes
  const InputFile file(path);
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min(kAtATime, file.size())));
  StreamHash hash;
  for (std::int64_t at = 0; at < file.size(); at += kAtATime) {
    const std::span<std::byte> some =
        std::span(bytes).first(static_cast<std::size_t>(std::min(kAtATime, file.size() - at)));
    file.read(at, some);
    hash.update(some.data(), some.size());
  }
  return hash.text();
}

/// "HASH  NAME", the name without folders.
std::string line_of(const std::string& base, const std::string& name) {
  return text(hash_of_file(base + name), "  ",
              std::filesystem::path(base + name).filename().string());
}

}  // namespace

void write_digests(const std::string& base, std::span<const std::string> names) {
  std::string lines;
  for (const std::string& name : names) lines += line_of(base, name) + "\n";
  write_atomically(base + kDigests, lines);
}

Digests check_digests(const std::string& base, std::span<const std::string> names) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(base + kDigests, error)) return Digests::Missing;
  const std::vector<std::string> lines = split(read_file(base + kDigests), '\n');
  for (const std::string& name : names) {
    const std::string ending = "  " + std::filesystem::path(base + name).filename().string();
    const auto line = std::ranges::find_if(
        lines, [&](const std::string& each) { return each.ends_with(ending); });
    if (line == lines.end()) return Digests::Missing;
    const std::string now = line_of(base, name);
    if (now != *line)
      fail(Fault::Data, base, name, " is damaged: its digest is ", split(now, ' ')[0], ", in ",
           base, kDigests, " it is ", split(*line, ' ')[0]);
  }
  return Digests::Equal;
}

}  // namespace tessera
