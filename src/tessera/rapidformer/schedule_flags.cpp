#include <cmath>

#include "tessera/base/text.h"
#include "tessera/rapidformer/asked_run.h"

namespace tessera {

namespace {

/// Two flags that answer one question, both given.
bool both_given(AskedRun& run, std::string_view one, std::string_view other,
                std::string_view question) {
  if (run.flags.find(one) == nullptr || run.flags.find(other) == nullptr) return false;
  run.problems.add(text(run.flags.written(one), " and ", run.flags.written(other),
                        " disagree: both set ", question, "; give one"));
  return true;
}

/// A number of samples as steps; what does not fill a step is left out, with a notice.
void take_samples(AskedRun& run, std::string_view flag, std::string_view field) {
  const std::optional<std::int64_t> samples = run.flags.count(flag);
  if (!samples || run.global_batch_size <= 0) return;
  const std::int64_t steps = *samples / run.global_batch_size;
  if (*samples % run.global_batch_size != 0)
    run.notices.push_back(text(run.flags.written(flag), " are ", steps, " steps of ",
                               run.global_batch_size, " samples, with ",
                               *samples % run.global_batch_size, " left over"));
  run.flags.set(field, {text(steps)}, text("--", flag));
}

/// After what --lr-decay-iters and --train-iters, or samples in their place, say.
void take_warmup_fraction(AskedRun& run) {
  const std::optional<double> fraction = run.flags.number("lr-warmup-fraction");
  if (!fraction) return;
  const std::string written = run.flags.written("lr-warmup-fraction");
  if (!(*fraction >= 0 && *fraction <= 1)) {
    run.problems.add(text(written, " is not a fraction; give a number from 0 to 1"));
    return;
  }
  const RunConfig config = run.so_far();
  std::int64_t decay = config.optimizer.schedule.decay_steps;
  if (decay == 0) {
    if (config.epochs > 0)
      return run.problems.add(
          text(written, " is a share of --lr-decay-iters, which is known only later, from epochs ",
               config.epochs,
               " and the data; give --lr-decay-iters too, or "
               "--lr-warmup-iters"));
    decay = config.steps;
  }
  const double steps = *fraction * static_cast<double>(decay);
  const std::int64_t whole = std::llround(steps);
  constexpr double kRounding = 1e-6;
  if (std::abs(steps - static_cast<double>(whole)) > kRounding)
    run.notices.push_back(
        text(written, " of ", decay, " iterations is ", steps, "; the warm-up has ", whole));
  run.flags.set("lr-warmup-steps", {text(whole)}, "--lr-warmup-fraction");
}

/// --eval-iters 0 is no validation, where the field's 0 is one of all there is.
void take_validation(AskedRun& run) {
  const std::optional<std::int64_t> batches = run.flags.count("eval-iters");
  if (!batches) return;
  run.flags.set("eval-iters", {text(*batches)}, "--eval-iters");
  if (*batches != 0) return;
  run.flags.forget("eval-every");
  run.flags.set("eval-every", {"0"}, "--eval-iters");
  run.flags.set("eval-at-end", {"false"}, "--eval-iters");
}

}  // namespace

void take_schedule_flags(AskedRun& run) {
  if (const std::string* const epochs = run.flags.find("epochs");
      epochs != nullptr && run.flags.count("epochs") == 0)
    run.problems.add(text(run.flags.written("epochs"),
                          " is no pass over the data; give 1 or more, or --train-iters instead"));
  take_validation(run);
  constexpr std::string_view kLong = "the length of the run", kWarm = "the length of the warm-up",
                             kDecay = "the length of the decay";
  const bool twice = both_given(run, "train-iters", "train-samples", kLong) ||
                     both_given(run, "epochs", "train-samples", kLong);
  if (!twice) take_samples(run, "train-samples", "steps");
  if (!both_given(run, "lr-decay-iters", "lr-decay-samples", kDecay))
    take_samples(run, "lr-decay-samples", "lr-decay-steps");
  const bool warm = both_given(run, "lr-warmup-iters", "lr-warmup-fraction", kWarm) ||
                    both_given(run, "lr-warmup-samples", "lr-warmup-fraction", kWarm) ||
                    both_given(run, "lr-warmup-iters", "lr-warmup-samples", kWarm);
  if (warm) return;
  take_samples(run, "lr-warmup-samples", "lr-warmup-steps");
  take_warmup_fraction(run);
}

}  // namespace tessera
