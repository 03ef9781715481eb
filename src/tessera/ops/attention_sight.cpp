#include "tessera/ops/attention_sight.h"

#include <algorithm>

namespace tessera {

namespace {

/// Sum over y <= x of y, where it is taken for 0 below that and for t above t.
double sum_up_to(double x, double t) {
  const double inside = std::clamp(x, 0.0, t);
  return inside * (inside + 1) / 2 + std::max(x - t, 0.0) * t;
}

/// Of s queries and t keys, the pairs whose key lies at most `most` positions ahead.
double pairs_up_to(std::int64_t most, double s, double t) {
  const double c = std::clamp(static_cast<double>(most), -s, t);
  return sum_up_to(c + s, t) - sum_up_to(c, t);
}

}  // namespace

double Sight::pairs(std::int64_t s, std::int64_t t) const {
  const auto keys = static_cast<double>(t), queries = static_cast<double>(std::max(s, t));
  const double all = pairs_up_to(last, queries, keys) - pairs_up_to(first - 1, queries, keys);
  return queries == 0 ? 0 : all * static_cast<double>(s) / queries;
}

Sight sight_of(const OpCall& call) {
  Sight out;
  const std::int64_t window = call.integer_or("window", 0);
  if (window > 0) out = {1 - window, window - 1};
  if (call.flag("causal")) out.last = 0;
  return out;
}

}  // namespace tessera
