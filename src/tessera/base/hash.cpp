#include "tessera/base/hash.h"

#include <xxhash.h>

#include <new>

namespace tessera {

namespace {

std::string hex(XXH128_hash_t hash) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out(32, '0');
  for (int i = 0; i < 16; ++i) {
    out[static_cast<std::size_t>(i)] = kDigits[(hash.high64 >> (60 - 4 * i)) & 15];
    out[static_cast<std::size_t>(16 + i)] = kDigits[(hash.low64 >> (60 - 4 * i)) & 15];
  }
  return out;
}

}  // namespace

std::uint64_t hash64(std::string_view bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::string hash128_text(std::span<const std::byte> bytes) {
  return hex(XXH3_128bits(bytes.data(), bytes.size()));
}

std::uint64_t random_key(std::uint64_t seed, std::string_view path) {
  return XXH3_128bits_withSeed(path.data(), path.size(), seed).low64;
}

StreamHash::StreamHash() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(static_cast<XXH3_state_t*>(state_));
}
StreamHash::~StreamHash() { XXH3_freeState(static_cast<XXH3_state_t*>(state_)); }
void StreamHash::update(const void* bytes, std::size_t size) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state_), bytes, size);
}
std::string StreamHash::text() const {
  return hex(XXH3_128bits_digest(static_cast<XXH3_state_t*>(state_)));
}

}  // namespace tessera
