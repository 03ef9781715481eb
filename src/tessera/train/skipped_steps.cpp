#include "tessera/train/skipped_steps.h"

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

void fail_of_skipped(const RunConfig& config, const StepRecord& last, std::int64_t bad,
                     std::int64_t hopeless, const std::string& how_to_go_on) {
  const auto least = static_cast<float>(config.optimizer.loss_scale.least);
  const bool smallest = last.loss_scale && *last.loss_scale <= least;
  const std::string scale = smallest ? text(", the last ", hopeless, " at loss scale ",
                                            *last.loss_scale, ", the smallest")
                                     : "";
  fail(Fault::Numerics, "loss or gradient was inf or nan in ", bad, " steps in a row, ",
       last.step - bad + 1, " to ", last.step, scale, " (loss ", last.loss, ", gradient norm ",
       last.grad_norm, ", lr ", last.lr, "); they changed no parameter",
       last.step > bad ? ", but the steps before them may have made some too large" : "",
       "; lower --lr or --clip-grad, or lengthen --lr-warmup-steps",
       smallest ? ", or lower --min-loss-scale" : "",
       last.loss_scale ? ", or compute with --bf16" : "", ", and resume with ", how_to_go_on);
}

std::string skipped_end_text(const RunConfig& config, std::int64_t step, std::int64_t bad) {
  return text(bad == 1 ? text("the last step, ", step, ", was")
                       : text("the last ", bad, " steps, ", step - bad + 1, " to ", step, ", were"),
              " skipped and changed no parameter; ",
              config.optimizer.loss_scale.on
                  ? "if the loss was finite, train longer or lower --initial-loss-scale; else "
                    "lower --lr"
                  : "lower --lr or --clip-grad, or lengthen --lr-warmup-steps");
}

}  // namespace tessera
