#pragma once
/// The machine: bandwidth and latency of the links between ranks, by level.

#include <array>
#include <string>
#include <string_view>

#include "tessera/tensor/mesh.h"

namespace tessera {

/// The link of one level, as seen by a rank that receives from a neighbour.
struct LinkSpeed {
  double gigabytes_per_s = 0;  // 1e9 bytes
  double microseconds = 0;     // from the first word sent to the first word there
  friend bool operator==(const LinkSpeed&, const LinkSpeed&) = default;
};

/// Links by level; nothing moves along an axis of time. The defaults are round figures of one
/// server and a 100 Gb/s network: they order the levels; what is measured replaces them.
struct Machine {
  LinkSpeed core{15, 1};
  LinkSpeed socket{10, 2};
  LinkSpeed host{10, 5};
  LinkSpeed rack{5, 20};

  /// Errors: the level of time.
  const LinkSpeed& link(Level level) const;
  friend bool operator==(const Machine&, const Machine&) = default;
};

/// "core=15GB/s+1us socket=10GB/s+2us host=10GB/s+5us rack=5GB/s+20us"
std::string to_text(const Machine& machine);
/// Levels that are not named keep their defaults. Errors: an unknown level; a speed that is not
/// positive; a negative latency.
Machine parse_machine(std::string_view line);

}  // namespace tessera
