#include "tessera/bench/standing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tessera/base/median.h"
#include "tessera/train/product_rate.h"

namespace tessera {

namespace {

/// Samples per second in a turn.
double rate(const Contestant& contestant, const Turn& turn) {
  return static_cast<double>(contestant.batch) / median(turn.step_seconds);
}

/// Of each turn that both took.
std::vector<double> ratios(const Contestant& mine, const Contestant& plain) {
  std::vector<double> out;
  for (std::size_t t = 0; t < std::min(mine.turns.size(), plain.turns.size()); ++t) {
    if (mine.turns[t].measured() && plain.turns[t].measured())
      out.push_back(rate(mine, mine.turns[t]) / rate(plain, plain.turns[t]));
  }
  return out;
}

/// How far apart numbers lie: of five and more, those in the middle half.
double middle_width(std::vector<double> numbers) {
  constexpr std::size_t kFew = 5;
  std::ranges::sort(numbers);
  const std::size_t out = numbers.size() < kFew ? 0 : numbers.size() / 4;
  return numbers[numbers.size() - 1 - out] - numbers[out];
}

double mean_of_last(const std::vector<double>& losses, std::size_t count) {
  return std::accumulate(losses.end() - static_cast<std::ptrdiff_t>(count), losses.end(), 0.0) /
         static_cast<double>(count);
}

std::optional<LossDistance> distance(const std::vector<double>& mine,
                                     const std::vector<double>& plain) {
  if (mine.empty() || mine.size() != plain.size()) return std::nullopt;
  LossDistance out;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const double difference = std::abs(mine[i] - plain[i]);
    out.mean += difference / static_cast<double>(mine.size());
    out.largest = std::isnan(difference) ? difference : std::max(out.largest, difference);
    out.relative = std::max(out.relative, difference / std::abs(plain[i]));
    if (std::isnan(out.largest)) break;
  }
  const std::size_t last = std::max<std::size_t>(1, mine.size() / 10);
  out.last = mean_of_last(mine, last) - mean_of_last(plain, last);
  return out;
}

/// In a step; 0: not known.
double model_flops(const Contestant& contestant) {
  double out = 0;
  for (const Turn& turn : contestant.turns) out = std::max(out, turn.model_flops);
  return out;
}

Standing standing(const Contestant& contestant, const Contestant& plain) {
  Standing out;
  out.name = contestant.name, out.flags = contestant.flags;
  std::vector<double> steps;
  std::int64_t tokens = 0;
  for (const Turn& turn : contestant.turns) {
    out.planned_only = out.planned_only || turn.planned_only;
    if (out.failure.empty()) out.failure = turn.failure;
    if (turn.planned_bytes > 0)
      out.planned_bytes = turn.planned_bytes, out.planned_host_bytes = turn.planned_host_bytes,
      out.planned_file_bytes = turn.planned_file_bytes;
    if (turn.parameters > 0) {
      out.devices = turn.devices, out.parameters = turn.parameters, out.kernels = turn.kernels;
    }
    if (!turn.measured()) continue;
    ++out.turns;
    tokens = turn.tokens_per_step;
    steps.insert(steps.end(), turn.step_seconds.begin(), turn.step_seconds.end());
    out.peak_bytes = std::max(out.peak_bytes, turn.peak_bytes);
    out.others = std::max(out.others, turn.others);
    if (out.losses.empty()) out.losses = turn.losses, out.skipped = turn.skipped;
  }
  if (steps.empty()) return out;
  const auto [low, high] = std::ranges::minmax(steps);
  out.step_seconds = median(steps), out.step_range = {low, high};
  out.samples_per_s = static_cast<double>(contestant.batch) / *out.step_seconds;
  if (tokens > 0) out.tokens_per_s = static_cast<double>(tokens) / *out.step_seconds;
  const double own = model_flops(contestant);
  const double flops = own > 0 ? own
                               : model_flops(plain) * static_cast<double>(contestant.batch) /
                                     static_cast<double>(plain.batch);
  const double peak = contestant.peak_flops_per_s * static_cast<double>(out.devices);
  if (flops > 0 && peak > 0) out.mfu = utilization(flops, *out.step_seconds, peak);
  const std::vector<double> each = ratios(contestant, plain);
  if (each.empty()) return out;
  const auto [least, most] = std::ranges::minmax(each);
  out.ratio_range = Range{least, most};
  out.disagrees = middle_width(each) > kMostDisagreement * median(each);
  if (!out.disagrees) out.ratio = median(each);
  return out;
}

}  // namespace

std::vector<Standing> standings(const std::vector<Contestant>& contestants) {
  std::vector<Standing> out;
  for (const Contestant& contestant : contestants)
    out.push_back(standing(contestant, contestants.front()));
  for (Standing& each : out) {
    const Standing& plain = out.front();
    if (each.peak_bytes > 0 && plain.peak_bytes > 0)
      each.memory_ratio =
          static_cast<double>(each.peak_bytes) / static_cast<double>(plain.peak_bytes);
    const Contestant& contestant = contestants[static_cast<std::size_t>(&each - out.data())];
    if (contestant.same_samples) each.distance = distance(each.losses, plain.losses);
  }
  return out;
}

}  // namespace tessera
