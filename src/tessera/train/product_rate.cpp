#include "tessera/train/product_rate.h"

#include <algorithm>

#include "tessera/models/family.h"

namespace tessera {

double product_rate_for(const RunSetup& setup, std::int64_t steps, const Backend& backend) {
  constexpr double kMost = 0.5, kLeast = 0.01, kGuessedFlopsPerSecond = 5e10, kShare = 0.01;
  const ModelConfig& m = setup.config.model;
  const auto width = static_cast<double>(m.width);
  const double weights = 12 * static_cast<double>(layer_count(m)) * width * width,
               tokens = static_cast<double>(setup.tokens_per_step());
  const double work = 6 * weights * tokens * static_cast<double>(steps);  // of products, about
  return backend.product_rate(std::clamp(kShare * work / kGuessedFlopsPerSecond, kLeast, kMost));
}

std::optional<double> utilization(double model_flops, double seconds, double flops_per_s) {
  const double share = model_flops / seconds / flops_per_s;
  return share <= 1 ? std::optional(share) : std::nullopt;
}

}  // namespace tessera
