#pragma once
/// Plans of training steps some of whose values lie on the host, by chance.

#include <cstdint>

#include "tessera/ir/strategy.h"
#include "tessera/plan/compile.h"

namespace tessera {

/// Which values lie on the host.
struct OnHost {
  int states = 0, activations = 0;  // so many of a hundred
  /// The next values of such states, which the others are copied to at the end.
  int updates_there = 50;  // so many of a hundred are computed on the host
  std::uint64_t seed = 1;
};

/// A placed graph with such values, and the copies that bring them there and back. What a program
/// computes stays the same.
Graph to_host(const Graph& placed, const OnHost& which);

/// The plan of compile(), of programs that have gone through to_host().
Plan host_plan(const std::vector<ProgramSource>& sources, const OnHost& which, Device& device,
               const CompileOptions& options);

}  // namespace tessera
