#pragma once
/// Compiled programs, kept from one start to the next: a compiler of GPUs takes minutes.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

/// A file of the cache: the hash of the rest, the length of the key, the key and the program.
std::string kept_bytes(std::string_view key, std::string_view program);
/// The program in such a file. None: it is of another key, or damaged.
std::optional<std::string> kept_program(std::string_view bytes, std::string_view key);

class ProgramCache {
 public:
  /// `folder`: made where it is missing; empty: nothing is kept. Of programs beyond so many bytes in
  /// all, those that were not used for longest go.
  explicit ProgramCache(std::string folder, std::uintmax_t most_bytes = std::uintmax_t{4} << 30)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  bool keeps() const { return !folder_.empty(); }
  /// What was kept for a key. None: nothing was, or it is damaged.
  std::optional<std::string> find(std::string_view key) const;
  /// Where the folder cannot be written, nothing is kept.
  void keep(std::string_view key, std::string_view program) const;

 private:
  std::string path_of(std::string_view key) const;

  std::string folder_;
  std::uintmax_t most_bytes_;
};

}  // namespace tessera
