#pragma once
/// Which stretches of an arena are taken during which time. For memory.cpp.

#include <cstdint>
#include <vector>

#include "tessera/plan/memory.h"

namespace tessera {

struct Stretch {
  std::int64_t offset, end;
};

/// A binary tree over time. A node knows what is taken at any moment of its time, and what during
/// all of it, each as disjoint stretches: few, because buffers are close together. So neither
/// adding nor asking looks at all buffers.
class Occupancy {
 public:
  /// For times 0 ... end - 1 and about as many buffers.
  Occupancy(std::int32_t end, std::size_t buffers);

  void add(TimeSpan life, Stretch stretch);
  /// The stretches taken at any moment of `life`, by offset; they may overlap.
  const std::vector<Stretch>& during(TimeSpan life);

 private:
  using Runs = std::vector<Stretch>;  // by offset, disjoint
  struct Part {
    TimeSpan life;
    Stretch stretch;
  };
  static void add(Runs& runs, Stretch stretch);
  TimeSpan time_of(std::size_t node) const;
  template <typename Visit>
  void descend(std::size_t node, TimeSpan life, const Visit& visit);

  std::size_t leaves_ = 1;
  std::int64_t step_ = 1;        // the time of a leaf
  std::vector<Runs> any_, all_;  // per node, the root at 1: taken at some moment, at every one
  std::vector<std::vector<Part>> parts_;  // per leaf: buffers that live during part of it
  std::vector<Stretch> found_;
};

}  // namespace tessera
