#include "tessera/config/run_needs.h"

#include <algorithm>

#include "tessera/models/family.h"
#include "tessera/models/task.h"

namespace tessera {

DType sums_of(const RunConfig& c) {
  const bool told =
      c.reduce_dtype != "auto" && std::ranges::find(kSumDTypes, c.reduce_dtype) != kSumDTypes.end();
  if (told) return parse_dtype(c.reduce_dtype);
  return c.fp16 ? DType::F16 : DType::F32;
}

std::optional<Precision> precision_of(const RunConfig& c) {
  if (!c.bf16 && !c.fp16 && !c.mixed_precision) return std::nullopt;
  return Precision{.compute = c.fp16 ? DType::F16 : DType::BF16, .sums = sums_of(c)};
}

bool judges_epochs(const RunConfig& config) {
  if (config.epochs == 0 || !problems(config.model).empty()) return false;
  const Task task = task_of(config.model);
  return task.judge != nullptr || !task.perplexity_of.empty();
}

bool validates(const RunConfig& config) {
  return (config.held_out > 0 || !config.valid_data.empty()) &&
         (config.eval_every > 0 || config.eval_at_end || judges_epochs(config));
}

}  // namespace tessera
