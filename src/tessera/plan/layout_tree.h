#pragma once
/// One walk through the tree of choices of a layout. For layout_search.cpp.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tessera/plan/layout_problem.h"

namespace tessera {

/// The tree. Every buffer has a *floor*: the lowest offset that what is known so far leaves it. A
/// choice takes a buffer of which no other can lie below, and either places it at its floor, so
/// that everything alive with it lies above it, or refuses it. A layout in which some buffer could
/// be moved down into a gap need not be looked at, as moving it gives another one; so a refused
/// buffer needs a *blocker*, one that reaches into the place it was refused, and lies above that.
///
/// What each choice implies is drawn at once (settle()): floors above blockers, and in every
/// section that what lies above a floor fits below the capacity, and what does not fit above others
/// lies below them. Where what is left falls into parts that are never alive together, each part is
/// searched for itself, and a part without layout refutes what was chosen before the split, not
/// what was chosen in other parts.
class LayoutTree {
 public:
  enum class Next {
    Lowest,    // choose the buffer with the lowest floor
    Tightest,  // the lowest in the section with the least room to spare
  };
  struct Walk {
    Next next = Next::Lowest;
    std::vector<int> rank;  // of each buffer: at one floor, the least goes first
    std::int64_t capacity = 0, max_steps = 0;
  };

  /// Places that are given do not contradict each other: FirstFit finds out.
  explicit LayoutTree(LayoutProblem problem);

  LayoutOutcome walk(const Walk& walk);
  /// False: too many buffers are alive with others whose place is given. Walks give up at once.
  bool can_walk() const { return can_walk_; }

  const LayoutProblem& problem() const { return problem_; }
  /// The offset of each buffer of the problem, after Found.
  const std::vector<std::int64_t>& offsets() const { return floor_; }
  /// How many decisions the last walk made.
  std::int64_t decisions() const { return decided_; }
  std::int64_t steps() const { return steps_; }

 private:
  /// Buffers to place that are connected in time: those not yet placed of lists_[first ... + size).
  struct Part {
    std::size_t first = 0, size = 0;
    int parent = -1;  // the decision after which it was split off; -1: none
    int next = -1;    // the part to search after it
  };
  struct Decision {
    int buffer = 0;
    Part part;
    int pending = -1;  // the state before it
    std::size_t trail = 0, lists = 0, parts = 0, waiting = 0;
  };
  struct Change {
    std::int64_t* what;
    std::int64_t before;
  };

  void reset(const Walk& walk);
  int choose(const Part& part) const;
  int lowest(std::span<const int> among) const;
  int tightest_section(const Part& part) const;
  /// The chosen buffer, or one below which it cannot lie as long as this one may lie below it.
  int without_any_below(int b) const;
  bool place(int b);
  bool refuse(int b);
  void split(const Part& part, int parent);
  std::vector<int> parts_of_sections(std::span<const int> live, int begin, int end) const;
  /// Takes back decisions from `d` on that do not follow from it, until another choice holds.
  bool back(int d);

  void set(std::int64_t& what, std::int64_t value);
  bool raise(int b, std::int64_t to);
  void touch(int b);
  /// Draws what follows from changes, until nothing does. False: there is no layout; or `holds`
  /// was false, and the changes are forgotten.
  bool settle(bool holds = true);
  bool lift_waiting();
  bool settle_section(int s);
  bool order_section(int s, std::size_t live);
  /// The lowest offset from `low` on that overlaps no fixed buffer.
  std::int64_t beside_fixed(int b, std::int64_t low) const;
  bool placed(int b) const { return placed_[at(b)] != 0; }
  /// Waits for a place. Fixed buffers do not: floors of others jump over them.
  bool is_open(int b) const { return !placed(b) && !buffer(b).fixed; }
  const LayoutProblem::Buffer& buffer(int b) const { return problem_.buffers[at(b)]; }
  bool before(int a, int b) const;

  struct Obstacle {
    std::int64_t low = 0, end = 0;
  };

  LayoutProblem problem_;
  std::vector<std::vector<Obstacle>> obstacles_;  // of each open buffer: fixed ones beside it
  bool can_walk_ = true;
  const Walk* walk_ = nullptr;
  std::int64_t decided_ = 0;
  mutable std::int64_t steps_ = 0;

  // Changed by decisions; all changes are in trail_. Nothing is resized during a walk.
  std::vector<std::int64_t> floor_, placed_;
  std::vector<std::int64_t>
      refused_;                      // where a buffer was refused that has no blocker yet, else -1
  std::vector<std::int64_t> reach_;  // of each section: where its buffers end at least
  std::vector<std::int64_t> low_;    // and the lowest floor in it
  std::vector<Change> trail_;
  std::vector<int> waiting_;  // buffers that were refused

  std::vector<Decision> decisions_;
  std::vector<Part> parts_;
  std::vector<int> lists_;
  int pending_ = -1;  // the part to search next

  // Used by settle() alone.
  std::vector<char> dirty_;
  std::vector<int> dirty_sections_;
  int changed_begin_ = 0, changed_end_ = 0;  // sections in which floors changed
  std::vector<std::pair<int, std::int64_t>> lifts_;
  std::vector<std::int64_t> largest_;
};

}  // namespace tessera
