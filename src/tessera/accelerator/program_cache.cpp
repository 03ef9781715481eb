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

std::string kept_bytes(std::string_view key, std::string_view program) {
  const std::string rest = text(key.size(), "\n", key, program);
  return hash_of(rest) + rest;
}

std::optional<std::string> kept_program(std::string_view bytes, std::string_view key) {
  const std::string head = text(key.size(), "\n", key);
  constexpr std::size_t kHash = 32;
  if (bytes.size() < kHash + head.size() || bytes.compare(kHash, head.size(), head) != 0)
    return std::nullopt;
  if (hash_of(bytes.substr(kHash)) != bytes.substr(0, kHash)) return std::nullopt;
  return std::string(bytes.substr(kHash + head.size()));
}

std::string ProgramCache::path_of(std::string_view key) const {
  return text(folder_, "/", hash_of(key));
}

std::optional<std::string> ProgramCache::find(std::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  std::optional<std::string> out;
  try {
    out = kept_program(read_file(path_of(key), Fault::Resource), key);
  } catch (const Error&) {
    return std::nullopt;
  }
  std::error_code ignored;  // a folder that is only read
  if (out) fs::last_write_time(path_of(key), fs::file_time_type::clock::now(), ignored);
  return out;
}

void ProgramCache::keep(std::string_view key, std::string_view program) const {
  if (folder_.empty()) return;
  try {
    fs::create_directories(folder_);
    write_atomically(path_of(key), kept_bytes(key, program));
    forget_oldest(folder_, most_bytes_);
  } catch (const Error&) {                 // a full or a foreign disk
  } catch (const fs::filesystem_error&) {  // the same, or another process tidies up
  }
}

}  // namespace tessera
