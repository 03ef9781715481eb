#include "tessera/config/run_needs.h"

#include <algorithm>

namespace tessera {

DType sums_of(const RunConfig& c) {
  const bool given =
      c.reduce_dtype != "auto" && std::ranges::find(kSumDTypes, c.reduce_dtype) != kSumDTypes.end();
  if (given) return parse_dtype(c.reduce_dtype);
  return c.fp16 ? DType::F16 : DType::F32;
}

std::optional<Precision> precision_of(const RunConfig& c) {
  if (!c.bf16 && !c.fp16 && !c.mixed_precision) return std::nullopt;
  return Precision{.compute = c.fp16 ? DType::F16 : DType::BF16, .sums = sums_of(c)};
}

bool judges_epochs(const RunConfig& config, const Task& task) {
  return config.epochs > 0 && (task.judge != nullptr || !task.perplexity_of.empty());
}

bool validates(const RunConfig& config, const Task& task) {
  return (config.held_out > 0 || !config.valid_data.empty()) &&
         (config.eval_every > 0 || config.eval_at_end || judges_epochs(config, task));
}

}  // namespace tessera
