#pragma once
/// One random graph, spread over a random mesh in a random way, held to what one device computes.

#include <cstdint>
#include <map>
#include <string>

#include "runtime/random_strategy.h"

namespace tessera::fuzz {

/// What a row of random meshes went through.
struct MeshTally {
  int triples = 0;                                  // equal to one device
  std::map<std::string, int, std::less<>> refused;  // by reason
  std::map<std::string, int, std::less<>> met;      // triples that meet it, by what it is
  std::int64_t compared = 0;                        // numbers
};

/// What is wrong with the triple of a seed; empty where nothing is. A refusal with a reason is
/// right.
std::string mesh_wrong(std::uint64_t seed, int ops, MeshTally& tally);

/// The same for as few ops and pins as still fail, with graph and strategy.
std::string smallest_mesh_failure(std::uint64_t seed, int ops);

}  // namespace tessera::fuzz
