#include "tessera/plan/layout_problem.h"

#include <algorithm>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/base/round_up.h"
#include "tessera/base/size.h"

namespace tessera {

namespace {

/// Moments at which a buffer was born since one died, and the next event is a death.
std::vector<std::int64_t> fullest_moments(const std::vector<TimedBuffer>& buffers) {
  std::vector<std::int64_t> births, deaths, out;
  for (const TimedBuffer& b : buffers) births.push_back(b.lower), deaths.push_back(b.upper);
  std::sort(births.begin(), births.end());
  std::sort(deaths.begin(), deaths.end());
  std::size_t dead = 0;
  for (std::size_t i = 0; i < births.size(); ++i) {
    while (deaths[dead] <= births[i]) ++dead;
    if (i + 1 == births.size() || deaths[dead] <= births[i + 1]) out.push_back(births[i]);
  }
  return out;
}

int first_not_before(const std::vector<std::int64_t>& moments, std::int64_t time) {
  return static_cast<int>(std::lower_bound(moments.begin(), moments.end(), time) - moments.begin());
}

std::int64_t total_bytes(std::span<const TimedBuffer> buffers) {
  std::int64_t total = 0, highest = 0;
  for (const TimedBuffer& b : buffers) {
    constexpr std::string_view kWhat = "bytes of all buffers";
    require(!b.offset || *b.offset % b.alignment == 0, "a buffer of ", b.bytes,
            " bytes is to lie at ", b.offset.value_or(0),
            ", which is not a multiple of its alignment, ", b.alignment);
    // A buffer lies at most alignment - 1 above the end of the one it rests on.
    total = size_sum(total, size_sum(b.bytes, b.alignment - 1, kWhat), kWhat);
    if (b.offset) highest = std::max(highest, size_sum(*b.offset, b.bytes, kWhat));
  }
  return size_sum(total, highest, "bytes of all buffers above those whose place is given");
}

}  // namespace

LayoutProblem make_layout_problem(std::span<const TimedBuffer> buffers, std::int64_t max_entries) {
  LayoutProblem out;
  out.total = total_bytes(buffers);
  std::vector<TimedBuffer> of;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].bytes > 0) of.push_back(buffers[i]), out.index.push_back(i);
  }
  const std::vector<std::int64_t> moments = fullest_moments(of);
  std::int64_t entries = 0;
  for (const TimedBuffer& b : of) {
    out.buffers.push_back({first_not_before(moments, b.lower), first_not_before(moments, b.upper),
                           b.bytes, b.alignment, b.offset.value_or(0), b.offset.has_value(),
                           static_cast<double>(b.upper) - static_cast<double>(b.lower)});
    entries += out.buffers.back().end - out.buffers.back().begin;
  }
  if (entries > max_entries) return out;
  out.alive.resize(moments.size());
  out.by_begin.resize(of.size());
  std::iota(out.by_begin.begin(), out.by_begin.end(), 0);
  const auto begin = [&](int b) { return out.buffers[at(b)].begin; };
  std::stable_sort(out.by_begin.begin(), out.by_begin.end(),
                   [&](int a, int b) { return begin(a) < begin(b); });
  out.begins.assign(moments.size() + 1, of.size());
  for (std::size_t k = of.size(); k-- > 0;) out.begins[at(begin(out.by_begin[k]))] = k;
  for (std::size_t s = moments.size(); s-- > 0;)
    out.begins[s] = std::min(out.begins[s], out.begins[s + 1]);
  for (std::size_t b = 0; b < of.size(); ++b) {
    for (int s = out.buffers[b].begin; s < out.buffers[b].end; ++s)
      out.alive[at(s)].push_back(static_cast<int>(b));
  }
  return out;
}

}  // namespace tessera
