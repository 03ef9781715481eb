#pragma once
/// The machine: how fast ranks compute and links carry bytes, and what that costs. Decisions,
/// redistribution and the times of a pipeline take their prices from here.

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

/// In whole femtoseconds, so that equal prices are equal.
struct LinkPrice {
  double per_byte = 0, per_step = 0;
};

/// Links by level, and what one rank can do; nothing moves along an axis of time. The defaults are
/// round figures of one server and a 100 Gb/s network: they order what could be done; what is
/// measured replaces them.
struct Machine {
  LinkSpeed core{15, 1};
  LinkSpeed socket{10, 2};
  LinkSpeed host{10, 5};
  LinkSpeed rack{5, 20};
  double gigaflops_per_s = 100;        // 1e9 operations
  double memory_gigabytes_per_s = 20;  // read and written

  /// Errors: the level of time.
  const LinkSpeed& link(Level level) const;
  LinkPrice price(Level level) const;
  /// Of receiving a byte over a link of that level, where one between cores costs 1.
  double relative_price(Level level) const;
  /// Until `bytes` have come over a link, in so many steps.
  double move_seconds(Level level, double bytes, double steps = 1) const;
  /// Of a kernel: its arithmetic or its bytes, whichever takes longer.
  double work_seconds(double flops, double bytes) const;
  friend bool operator==(const Machine&, const Machine&) = default;
};

/// "core=15GB/s+1us socket=10GB/s+2us host=10GB/s+5us rack=5GB/s+20us compute=100GFLOP/s
/// memory=20GB/s", in one line
std::string to_text(const Machine& machine);
/// What is not named keeps its default. Errors: an unknown level; a speed that is not positive; a
/// negative latency.
Machine parse_machine(std::string_view line);

}  // namespace tessera
