#pragma once
/// One random graph, held to all that is promised of graphs.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/random_graph.h"
#include "tessera/device/device.h"

namespace tessera::fuzz {

/// What a row of random graphs went through.
struct Tally {
  std::map<std::string, int, std::less<>> ops;  // graphs in which each op occurs
  int graphs = 0, mixing = 0;                   // mixing: that read several rows at once
  int plans = 0;                                // compiled and run
  int refused = 0;                              // micro-batches refused with a reason
  int compared = 0;                             // numbers
  int loose = 0;                                // tensors so sensitive that the bound says little
};

class Checker {
 public:
  Checker();  // devices of one, two and three threads

  /// What is wrong with the graph of a seed; empty where nothing is.
  std::string wrong(std::uint64_t seed, int ops, Tally& tally) const;
  /// The same for as few ops as still fail, with the graph.
  std::string smallest_failure(std::uint64_t seed, int ops) const;

 private:
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace tessera::fuzz
