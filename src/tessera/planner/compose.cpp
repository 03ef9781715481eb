#include "tessera/planner/compose.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/schedule/schedule.h"

namespace tessera {

namespace {

/// Micro-batches after which a pipeline does the same again and again, in turns of all its stages.
constexpr std::int64_t kTurns = 4;

}  // namespace

double StageCaps::of(std::size_t stage) const {
  const double cap = device.empty() ? all : device[stage];
  return cap > 0 ? cap : kNoEnd;
}

double Composition::peak_bytes() const {
  return *std::max_element(stage_bytes.begin(), stage_bytes.end());
}

/// What compose() works on.
struct Composer::Shape {
  const PlanChoice& choice;
  RecomputeOptions ways;
  std::int64_t micro_batches;
  const StageCaps& caps;
  std::vector<InFlight> in_flight;                      // by chunk
  std::vector<int> stage_of;                            // by chunk
  std::optional<std::vector<std::int64_t>> given = {};  // layers that are computed again

  /// How many of a chunk's layers are given. Which does not matter, as long as they are alike.
  std::int64_t given_of(const Chunk& has) const {
    return std::ranges::count_if(*given, [&](std::int64_t layer) {
      return has.first <= layer && layer < has.first + has.layers;
    });
  }
  std::size_t chunks() const { return stage_of.size(); }
};

std::int64_t Composer::layers() const {
  return std::accumulate(stacks_.begin(), stacks_.end(), std::int64_t{0});
}

StageUse Composer::use_of(const RecomputeOptions& ways, std::size_t chunk, std::size_t chunks,
                          const Chunk& has, std::int64_t again) const {
  StageUse out;
  const ModelUse& less = *ways.cheapest;
  std::int64_t begin = 0;
  for (std::size_t s = 0; s < stacks_.size(); ++s) {
    const std::int64_t end = begin + stacks_[s];
    const auto within = [&](std::int64_t first, std::int64_t last) {
      return static_cast<double>(
          std::max<std::int64_t>(0, std::min(last, end) - std::max(first, begin)));
    };
    const std::int64_t middle = has.first + again, last = has.first + has.layers;
    out += within(has.first, middle) * ways.smallest->layer[s];
    out += within(middle, last) * less.layer[s];
    if (s > 0 && has.first <= begin && begin < last) out += less.between[s - 1];
    begin = end;
  }
  if (chunk == 0) out += less.before;
  if (chunk + 1 == chunks) out += less.after;
  return out;
}

/// Of a chunk that is alone on its stage, or of all chunks of a stage together.
double Composer::bytes_of(const Shape& shape, std::size_t chunk, const StageUse& use) const {
  const bool reads = chunk == 0 || chunk + 1 == shape.chunks();
  const double samples =
      reads ? shape.ways.cheapest->sample_bytes * static_cast<double>(shape.micro_batches) : 0;
  const double base = std::max(shape.ways.cheapest->base[StageUse::kPeak],
                               shape.ways.smallest->base[StageUse::kPeak]);
  return base + use[StageUse::kPeak] + samples +
         shape.in_flight[chunk].more_bytes(use + shape.ways.cheapest->base);
}

/// How many layers of a chunk that is alone on its stage must be computed again; -1: all would not
/// do. Where that costs nothing, all are.
std::int64_t Composer::least_again(const Shape& shape, std::size_t chunk, const Chunk& has) const {
  const double cap = shape.caps.of(at(shape.stage_of[chunk]));
  const auto of = [&](std::int64_t again) {
    return use_of(shape.ways, chunk, shape.chunks(), has, again);
  };
  const auto fits = [&](const StageUse& use) { return bytes_of(shape, chunk, use) <= cap; };
  if (shape.given) return fits(of(shape.given_of(has))) ? shape.given_of(has) : -1;
  const StageUse none = of(0);
  if (shape.ways.smallest == shape.ways.cheapest) return fits(none) ? 0 : -1;
  const StageUse all = of(has.layers);
  if (!fits(all)) return fits(none) ? 0 : -1;
  if (all.micro_batch_seconds() <= none.micro_batch_seconds()) return has.layers;
  std::int64_t low = -1, high = has.layers;  // high fits
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (fits(of(middle)) ? high : low) = middle;
  }
  return high;
}

/// Layers for each chunk, so that the most that one takes is as little as it can be, then the sum
/// of squares. With `capped`, of stages of one chunk, what does not fit is left out.
bool Composer::cut(const Shape& shape, bool capped, Composition& out) const {
  const std::size_t chunks = shape.chunks(), n = at(layers());
  struct Best {
    double most = kNoEnd, squares = kNoEnd;
    std::int64_t begin = 0, again = 0;
    /// Of two that differ by rounding alone the first stays: layouts of models that are alike are.
    bool beats(const Best& other) const {
      constexpr double kRounding = 1 - 1e-9;
      if (most < other.most * kRounding) return true;
      return most * kRounding <= other.most && squares < other.squares * kRounding;
    }
  };
  struct Cost {
    std::int64_t again = 0;  // -1: it does not fit
    double seconds = 0;
  };
  const std::size_t widest = 2 * ((n + chunks - 1) / chunks) + 2;
  std::vector<std::vector<Best>> best(chunks + 1, std::vector<Best>(n + 1));
  best[0][0] = {0, 0, 0, 0};
  for (std::size_t c = 0; c < chunks; ++c) {
    const std::size_t fewest = c == 0 || c + 1 == chunks ? 0 : 1;
    std::vector<std::optional<Cost>> costs(widest + 1);  // of one stack: by the number of layers
    const auto cost = [&](std::size_t begin, std::size_t end) {
      std::optional<Cost>& known = costs[end - begin];
      if (known && stacks_.size() == 1 && !shape.given) return *known;
      const Chunk has{static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end - begin)};
      const std::int64_t free = shape.given ? shape.given_of(has) : 0;
      known = {capped ? least_again(shape, c, has) : free, 0};
      if (known->again >= 0)
        known->seconds = use_of(shape.ways, c, chunks, has, known->again).micro_batch_seconds();
      return *known;
    };
    for (std::size_t end = fewest; end <= n; ++end) {
      for (std::size_t begin = end > widest ? end - widest : 0; begin + fewest <= end; ++begin) {
        const Best& before = best[c][begin];
        if (before.most == kNoEnd) continue;
        const auto [again, seconds] = cost(begin, end);
        if (again < 0) continue;
        const Best next{std::max(before.most, seconds), before.squares + seconds * seconds,
                        static_cast<std::int64_t>(begin), again};
        Best& known = best[c + 1][end];
        if (next.beats(known)) known = next;
      }
    }
  }
  if (best[chunks][n].most == kNoEnd) return false;
  out.layout.assign(chunks, 0);
  out.recomputed.assign(chunks, 0);
  for (std::size_t c = chunks, end = n; c-- > 0;) {
    const Best& last = best[c + 1][end];
    out.layout[c] = static_cast<std::int64_t>(end) - last.begin;
    out.recomputed[c] = last.again;
    end = at(last.begin);
  }
  return true;
}

/// With the layout of `out`: what is computed again so that every stage fits. Layers of a stage
/// that has several chunks are added one by one, to the chunk that has most left.
bool Composer::fill(const Shape& shape, Composition& out) const {
  const std::size_t chunks = shape.chunks();
  out.recomputed.assign(chunks, 0);
  if (shape.given) {
    std::int64_t first = 0;
    for (std::size_t c = 0; c < chunks; first += out.layout[c++])
      out.recomputed[c] = shape.given_of({first, out.layout[c]});
  }
  bool all_fit = true;
  for (int stage = 0; stage < static_cast<int>(shape.choice.pipeline); ++stage) {
    const auto bytes = [&] {
      double sum = 0;
      std::int64_t first = 0;
      for (std::size_t c = 0; c < chunks; ++c) {
        const Chunk has{first, out.layout[c]};
        first += has.layers;
        if (shape.stage_of[c] != stage) continue;
        const StageUse use = use_of(shape.ways, c, chunks, has, out.recomputed[c]);
        const double base = sum > 0 ? bytes_of(shape, c, StageUse()) : 0;
        sum += bytes_of(shape, c, use) - base;
      }
      return sum;
    };
    const double cap = shape.caps.of(at(stage));
    while (bytes() > cap) {
      std::size_t next = chunks;
      for (std::size_t c = 0; c < chunks; ++c) {
        if (shape.stage_of[c] != stage || out.recomputed[c] == out.layout[c]) continue;
        if (next == chunks ||
            out.layout[c] - out.recomputed[c] > out.layout[next] - out.recomputed[next])
          next = c;
      }
      if (next == chunks || shape.given || shape.ways.smallest == shape.ways.cheapest) {
        all_fit = false;
        break;
      }
      ++out.recomputed[next];
    }
  }
  return all_fit;
}

const Pipeline& Composer::pipeline(const std::string& schedule, std::int64_t stages,
                                   std::int64_t chunks, std::int64_t micro_batches) {
  std::unique_ptr<Pipeline>& out = pipelines_[{schedule, stages, chunks, micro_batches}];
  if (!out)
    out = std::make_unique<Pipeline>(make_schedule(
        schedule, {static_cast<int>(stages), static_cast<int>(chunks), micro_batches}));
  return *out;
}

namespace {

/// When a stage has worked, and what its last micro-batches have begun to sum is there: one chunk
/// after the other, each from the middle of the action on that leaves it, or, without overlap, once
/// all is computed.
double end_of_sums(const Actions& actions, const Spans& spans, const std::vector<StageUse>& chunks,
                   std::int64_t count, bool overlap) {
  double link = 0;
  std::map<int, Span> last;  // by chunk: the action that ends it
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const Action& action = actions[i];
    if (action.microbatch + 1 == count && action.region != RegionKind::Forward)
      last[action.chunk] = spans[i];
  }
  std::vector<std::pair<double, double>> sums;  // when they begin, how long they take
  for (const auto& [chunk, span] : last)
    sums.emplace_back(overlap ? (span.begin + span.end) / 2 : spans.back().end,
                      chunks[at(chunk)][StageUse::kDataLast]);
  std::ranges::sort(sums);
  for (const auto& [begin, seconds] : sums)
    if (seconds > 0) link = std::max(link, begin) + seconds;
  return std::max(link, spans.back().end);
}

}  // namespace

/// From the first action to the last; never, where a schedule cannot run.
double Composer::played(const Shape& shape, const std::vector<StageUse>& chunks,
                        std::int64_t count) {
  const PlanChoice& choice = shape.choice;
  const Pipeline& of = pipeline(choice.schedule, choice.pipeline, choice.chunks, count);
  PlayOptions options;
  options.cost = [&](const Action& action) {
    return chunks[at(action.chunk)].seconds(action.region, action.microbatch, count);
  };
  const std::int64_t ranks = choice.devices() / choice.pipeline;
  for (const Edge& edge : of.edges())
    options.sends.push_back(machine_.message_seconds(of.stage_of(edge.giver) * ranks,
                                                     of.stage_of(edge.taker) * ranks, ranks,
                                                     shape.ways.cheapest->message_bytes));
  options.ahead = true;
  options.send_slots = 1;
  try {
    const std::vector<Spans> spans = of.play(options);
    double end = 0;
    for (std::size_t s = 0; s < spans.size(); ++s)
      end = std::max(end, end_of_sums(of.schedule().stages[s], spans[s], chunks, count,
                                      machine_.device.overlap));
    return end;
  } catch (const Error&) {
    return kNoEnd;  // stages would wait for each other
  }
}

/// From the first action to the last, of any number of micro-batches.
double Composer::loop_seconds(const Shape& shape, const std::vector<StageUse>& chunks) {
  const std::int64_t m = shape.micro_batches, p = shape.choice.pipeline;
  if (p > 1 && m <= (kTurns + 2) * p) return played(shape, chunks, m);
  if (p > 1) {
    const std::int64_t some = kTurns * p + m % p;
    const double a = played(shape, chunks, some), b = played(shape, chunks, some + p);
    return a == kNoEnd ? a : a + static_cast<double>((m - some) / p) * (b - a);
  }
  double out = 0;
  for (const RegionKind region : {RegionKind::Forward, RegionKind::Backward, RegionKind::Weights}) {
    out += chunks[0].seconds(region, 0, m);
    if (m > 1) out += chunks[0].seconds(region, m - 1, m);
    if (m > 2) out += static_cast<double>(m - 2) * chunks[0].seconds(region, 1, m);
  }
  const double beside =
      machine_.device.overlap ? chunks[0].seconds(RegionKind::Backward, m - 1, m) : 0;
  return out + std::max(0.0, chunks[0][StageUse::kDataLast] - beside);
}

void Composer::time(const Shape& shape, Composition& out) {
  const std::int64_t p = shape.choice.pipeline;
  const std::size_t n = shape.chunks();
  std::vector<StageUse> chunks(n);
  std::vector<StageUse> stages(at(p), shape.ways.cheapest->base);
  std::int64_t first = 0;
  for (std::size_t c = 0; c < n; ++c) {
    chunks[c] = use_of(shape.ways, c, n, {first, out.layout[c]}, out.recomputed[c]);
    first += out.layout[c];
    stages[at(shape.stage_of[c])] += chunks[c];
    chunks[c] += shape.ways.cheapest->base;
  }
  out.loop_seconds = loop_seconds(shape, chunks);
  double busy = 0, once = 0;
  for (const StageUse& stage : stages) {
    busy += static_cast<double>(shape.micro_batches) * stage.micro_batch_seconds();
    once = std::max(once, stage[StageUse::kBegin] + stage[StageUse::kUpdate]);
  }
  out.seconds = out.loop_seconds + once;
  out.bubble = std::max(0.0, 1 - busy / (out.loop_seconds * static_cast<double>(p)));
  out.busiest = *std::ranges::max_element(
      stages, {}, [](const StageUse& stage) { return stage.micro_batch_seconds(); });
}

/// What each stage takes with the layout of `out`.
void Composer::weigh(const Shape& shape, Composition& out) const {
  out.stage_bytes.assign(at(shape.choice.pipeline), 0);
  out.host_bytes.assign(at(shape.choice.pipeline), 0);
  std::int64_t first = 0;
  for (std::size_t c = 0; c < shape.chunks(); ++c) {
    const Chunk has{first, out.layout[c]};
    const StageUse use = use_of(shape.ways, c, shape.chunks(), has, out.recomputed[c]);
    first += has.layers;
    double& bytes = out.stage_bytes[at(shape.stage_of[c])];
    bytes += bytes_of(shape, c, use) - (bytes > 0 ? bytes_of(shape, c, StageUse()) : 0);
    double& host = out.host_bytes[at(shape.stage_of[c])];
    host += use[StageUse::kHost] + shape.in_flight[c].more_host_bytes(use) +
            (host > 0 ? 0 : shape.ways.cheapest->base[StageUse::kHost]);
  }
}

/// Which chunks lie where, and how many micro-batches each keeps.
void Composer::place(Shape& shape) {
  const PlanChoice& choice = shape.choice;
  shape.in_flight = {InFlight()};
  shape.stage_of = {0};
  if (choice.pipeline == 1) return;
  shape.in_flight.clear();
  shape.stage_of.clear();
  const std::int64_t p = choice.pipeline, m = shape.micro_batches;
  const std::int64_t some = m > (kTurns + 2) * p ? kTurns * p + m % p : m;
  const Pipeline& of = pipeline(choice.schedule, p, choice.chunks, some);
  for (int c = 0; c < of.chunks(); ++c) {
    shape.stage_of.push_back(of.stage_of(c));
    InFlight in_flight = in_flight_of(of, c);
    if (find_schedule(choice.schedule).keeps_all)
      in_flight.kept = in_flight.kept_long = static_cast<double>(m);
    shape.in_flight.push_back(in_flight);
  }
}

Composition Composer::compose(const PlanChoice& choice, const RecomputeOptions& ways,
                              std::int64_t micro_batches, const StageCaps& caps) {
  Shape shape{choice, ways, micro_batches, caps, {}, {}};
  place(shape);
  if (!choice.given_layers.empty()) shape.given = parse_layers(choice.given_layers, layers());
  Composition out;
  const bool given = !choice.layout.empty();
  out.fits = !given && choice.chunks == 1 && cut(shape, true, out);
  if (!out.fits) {
    if (given)
      out.layout = choice.layout;
    else if (!cut(shape, false, out))
      return out;
    out.fits = fill(shape, out);
  }
  time(shape, out);
  weigh(shape, out);
  if (caps.host > 0)
    for (const double bytes : out.host_bytes) out.fits = out.fits && bytes <= caps.host;
  return out;
}

}  // namespace tessera
