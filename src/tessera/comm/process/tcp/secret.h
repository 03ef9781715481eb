#pragma once
/// The secret of a run, by which its ranks know each other.
///
/// Whoever finds a port at which ranks meet may connect to it, other users of the machine too. So
/// every connection begins with a proof of both sides (introduce.h), and the secret itself is never
/// sent. The proofs are of the address that was dialled, so nobody can pass a connection on from
/// another one; and each word by which ranks meet has a keyed hash (line.h), the addresses of all
/// ranks too. What ranks send each other once they have met is neither signed nor encrypted: who
/// can change the traffic of the network between the hosts could write into it, and can read the
/// data and the weights. Such a network needs a tunnel.

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tessera::process {

/// What one side draws anew for every connection, so that no proof can be used again.
using Challenge = std::array<unsigned char, 32>;
using Proof = std::array<unsigned char, 32>;

class Secret {
 public:
  /// The least characters of a secret: it is drawn, not thought up (draw_secret).
  static constexpr std::size_t kLeast = 16;

  /// Of any words that all ranks are given.
  explicit Secret(std::string_view words = {});
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  /// Leaves nothing of it in memory.
  ~Secret();
  /// Keyed hash (HMAC-SHA-512-256 of libsodium) of who speaks and of all that was said before.
  Proof proof(std::string_view speaker, std::span<const std::byte> said) const;
  /// Takes the same time wherever they differ.
  static bool same(const Proof& a, const Proof& b);

 private:
  std::array<unsigned char, 32> key_;
};

Challenge draw_challenge();
/// A new secret as text: 64 hexadecimal digits of the system's random numbers.
std::string draw_secret();

}  // namespace tessera::process
