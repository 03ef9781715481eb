#include "tessera/comm/process/tcp/secret.h"

#include <sodium.h>

#include "tessera/base/error.h"

namespace tessera::process {

namespace {

void begin_sodium() {
  if (sodium_init() < 0)
    fail(Fault::Resource, "the system gives no random numbers (getrandom, /dev/urandom), without ",
         "which ranks cannot authenticate each other");
}

template <typename Bytes>
Bytes draw() {
  begin_sodium();
  Bytes out;
  randombytes_buf(out.data(), out.size());
  return out;
}

}  // namespace

Secret::Secret(std::string_view words) {
  static_assert(crypto_auth_KEYBYTES == sizeof(key_) && crypto_auth_BYTES == sizeof(Proof));
  begin_sodium();
  crypto_generichash(key_.data(), key_.size(), reinterpret_cast<const unsigned char*>(words.data()),
                     words.size(), nullptr, 0);
}

Secret::~Secret() { sodium_memzero(key_.data(), key_.size()); }

Proof Secret::proof(std::string_view speaker, std::span<const std::byte> said) const {
  std::string all = text(speaker, ":");
  all.append(reinterpret_cast<const char*>(said.data()), said.size());
  Proof out;
  crypto_auth(out.data(), reinterpret_cast<const unsigned char*>(all.data()), all.size(),
              key_.data());
  return out;
}

bool Secret::same(const Proof& a, const Proof& b) {
  return sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

Challenge draw_challenge() { return draw<Challenge>(); }

std::string draw_secret() {
  const auto bytes = draw<std::array<unsigned char, 32>>();
  std::string out(2 * bytes.size() + 1, '\0');
  sodium_bin2hex(out.data(), out.size(), bytes.data(), bytes.size());
  out.pop_back();
  return out;
}

}  // namespace tessera::process
