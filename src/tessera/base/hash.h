#pragma once
/// Hashes of bytes: XXH3 (xxhash package).

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tessera {

std::uint64_t hash64(std::string_view bytes, std::uint64_t seed = 0);

/// 128 bits as 32 lower-case hexadecimal digits.
std::string hash128_text(std::span<const std::byte> bytes);

/// The key of a random op: low 64 bits of XXH3-128 of its path, seeded.
std::uint64_t random_key(std::uint64_t seed, std::string_view path);

/// 128-bit hash of bytes that arrive in pieces.
class StreamHash {
 public:
  StreamHash();
  ~StreamHash();
  StreamHash(const StreamHash&) = delete;
  StreamHash& operator=(const StreamHash&) = delete;
  void update(const void* bytes, std::size_t size);
  void update(std::string_view bytes) { update(bytes.data(), bytes.size()); }
  std::string text() const;

 private:
  void* state_;
};

}  // namespace tessera
