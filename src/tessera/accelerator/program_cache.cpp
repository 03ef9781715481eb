#include "tessera/accelerator/program_cache.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

std::string hash_of(std::string_view bytes) {
  return hash128_text(std::as_bytes(std::span(bytes)));
}

/// Those that were not used for longest.
void forget_oldest(const fs::path& folder, std::uintmax_t most_bytes) {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    files.emplace_back(entry.last_write_time(), entry.path());
  std::ranges::sort(files, std::ranges::greater());
  std::uintmax_t bytes = 0;
  for (const auto& [time, path] : files) {
    bytes += fs::file_size(path);
    if (bytes > most_bytes) fs::remove(path);
  }
}

}  // namespace

std::string ProgramCache::path_of(std::string_view key) const {
  return text(folder_, "/", hash_of(key));
}

/// A file is the hash of the rest, the length of the key, the key and the program.
std::optional<std::string> ProgramCache::find(std::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  std::string all;
  try {
    all = read_file(path_of(key), Fault::Resource);
  } catch (const Error&) {
    return std::nullopt;
  }
  const std::string head = text(key.size(), "\n", key);
  constexpr std::size_t kHash = 32;
  if (all.size() < kHash + head.size() || all.compare(kHash, head.size(), head) != 0)
    return std::nullopt;
  if (hash_of(std::string_view(all).substr(kHash)) != all.substr(0, kHash)) return std::nullopt;
  std::error_code ignored;  // a folder that is only read
  fs::last_write_time(path_of(key), fs::file_time_type::clock::now(), ignored);
  return all.substr(kHash + head.size());
}

void ProgramCache::keep(std::string_view key, std::string_view program) const {
  if (folder_.empty()) return;
  const std::string rest = text(key.size(), "\n", key, program);
  try {
    fs::create_directories(folder_);
    write_atomically(path_of(key), text(hash_of(rest), rest));
    forget_oldest(folder_, most_bytes_);
  } catch (const Error&) {                 // a full or a foreign disk
  } catch (const fs::filesystem_error&) {  // the same, or another process tidies up
  }
}

}  // namespace tessera
