#include "tessera/train/validation.h"

#include <algorithm>

#include "tessera/base/size.h"

namespace tessera {

EvalWindows validation_windows(const PreparedRun& run) {
  const RunConfig& c = run.config;
  std::span<const std::int32_t> tokens = run.data.tokens.held_out();
  if (c.eval_iters > 0) {
    const std::int64_t labels = size_product({c.eval_iters, c.global_batch_size, c.model.context},
                                             "tokens of a validation");
    tokens = tokens.first(std::min(tokens.size(), static_cast<std::size_t>(labels) + 1));
  }
  return EvalWindows(tokens, c.model.context);
}

}  // namespace tessera
