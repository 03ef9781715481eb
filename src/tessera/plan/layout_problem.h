#pragma once
/// Buffers over sections of time, as the search for a layout sees them. For layout_search.cpp.

#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "tessera/base/index.h"
#include "tessera/plan/layout_search.h"

namespace tessera {

/// A section is a moment at which no more buffers can be alive: those alive at any other time are
/// among those of some section. So two buffers meet in time where they meet in a section.
struct LayoutProblem {
  struct Buffer {
    int begin = 0, end = 0;  // sections begin ... end - 1
    std::int64_t bytes = 0, alignment = 1;
    std::int64_t low = 0;  // where it lies at least
    bool fixed = false;    // and at most
    double seconds = 0;    // its lifetime, in the unit of the buffers
  };

  std::vector<Buffer> buffers;          // without those of no bytes
  std::vector<std::size_t> index;       // of each among the buffers that were given
  std::vector<std::vector<int>> alive;  // of each section
  std::vector<int> by_begin;            // all buffers, by the section they begin in
  std::vector<std::size_t> begins;      // by_begin[begins[s]...]: those that begin in s or later
  std::int64_t total = 0;               // no canonical layout is higher

  std::size_t sections() const { return alive.size(); }

  /// How many buffers meet b in time.
  std::int64_t neighbours(int b) const {
    const Buffer& of = buffers[at(b)];
    return std::ssize(alive[at(of.begin)]) - 1 +
           static_cast<std::int64_t>(begins[at(of.end)] - begins[at(of.begin + 1)]);
  }

  /// Calls `visit` with each buffer that meets b in time, but b.
  template <typename Visit>
  void for_neighbours(int b, const Visit& visit) const {
    const Buffer& of = buffers[at(b)];
    for (const int other : alive[at(of.begin)])
      if (other != b) visit(other);
    for (std::size_t k = begins[at(of.begin + 1)]; k < begins[at(of.end)]; ++k) visit(by_begin[k]);
  }
};

/// Errors: as search_layout(). Without sections where all lifetimes together would take more than
/// `max_entries` places in `alive`.
LayoutProblem make_layout_problem(std::span<const TimedBuffer> buffers, std::int64_t max_entries);

}  // namespace tessera
