#pragma once
/// Greedy layouts: buffers one after the other, each at the lowest place that is free. For
/// layout_search.cpp.

#include <cstdint>
#include <utility>
#include <vector>

#include "tessera/plan/layout_problem.h"

namespace tessera {

/// Takes about as long as the problem is large where buffers lie on each other without gaps, as
/// those do that are all alive together; else each is compared with all that it meets in time, as
/// long as there are steps.
class FirstFit {
 public:
  explicit FirstFit(const LayoutProblem& problem);

  /// First those whose place is given, then the others by ascending rank, those after `max_steps`
  /// on top of all that they meet. False: places that are given contradict each other.
  bool place(const std::vector<int>& rank, std::int64_t max_steps);

  /// The offset of each buffer of the problem, after place().
  const std::vector<std::int64_t>& offsets() const { return offsets_; }
  std::int64_t steps() const { return steps_; }  // of the last call

 private:
  std::int64_t top_over(const LayoutProblem::Buffer& of) const;
  std::int64_t lowest_free(int b);
  void put(int b, std::int64_t low);

  const LayoutProblem& problem_;
  // The least bytes of a buffer whose place is not given, so no smaller gap is of use; and the
  // grain that all places are multiples of.
  std::int64_t least_bytes_ = 0, grain_ = 1;
  std::vector<std::int64_t> offsets_;  // -1: waits for a place
  // Per section: where its highest buffer ends, and a height below which there is no gap.
  std::vector<std::int64_t> top_, full_;
  std::vector<std::pair<std::int64_t, std::int64_t>> taken_;  // begins and ends, of lowest_free()
  std::int64_t steps_ = 0;
};

}  // namespace tessera
