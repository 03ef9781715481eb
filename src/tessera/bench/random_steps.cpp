#include "tessera/bench/random_steps.h"

#include <chrono>
#include <span>

#include "tessera/base/hash.h"
#include "tessera/base/philox.h"
#include "tessera/models/family.h"
#include "tessera/tensor/batch_inputs.h"
#include "tessera/tensor/ignored_label.h"
#include "tessera/train/programs.h"

namespace tessera {

namespace {

void fill_randomly(const TaskInput& input, std::uint64_t seed, std::int64_t step,
                   BatchInputs& batch);

}  // namespace

void run_random_steps(RankGroup& group, const RunSetup& setup, std::int64_t steps,
                      const std::function<void(double seconds)>& after_step) {
  using Clock = std::chrono::steady_clock;
  if (group.plan().rank > 0) return group.follow();
  group.run(kInitProgram);
  for (std::int64_t step = 1; step <= steps; ++step) {
    group.set_step(step);
    const Clock::time_point begin = Clock::now();
    group.run(kTrainProgram, [&](BatchInputs& batch) {
      for (const TaskInput& input : setup.task().inputs)
        fill_randomly(input, static_cast<std::uint64_t>(setup.config.seed), step, batch);
    });
    after_step(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  group.stop();
}

namespace {

void fill_randomly(const TaskInput& input, std::uint64_t seed, std::int64_t step,
                   BatchInputs& batch) {
  const std::uint64_t key = random_key(seed, "verify." + input.name);
  if (input.dtype == DType::F32) {
    const std::span<float> values = batch.fill<float>(input.name);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] =
          static_cast<float>(philox(key, i, static_cast<std::uint64_t>(step))[0]) * 0x1p-31F - 1.0F;
    for (std::size_t i = 1; i < values.size() && input.ignorable; ++i) {
      if (philox(key, i, static_cast<std::uint64_t>(step))[1] % 8 == 0) values[i] = kIgnoredNumber;
    }
    return;
  }
  const std::span<std::int32_t> values = batch.fill<std::int32_t>(input.name);
  const std::int64_t of_sample = input.sample.numel();
  for (std::int64_t i = 0; i < std::ssize(values); ++i) {
    const PhiloxBlock random =
        philox(key, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(step));
    const bool first = of_sample == 1 ? i == 0 : i % of_sample == 0;
    const bool ignored = input.ignorable && random[0] % 8 == 0 && !first;
    const auto value =
        static_cast<std::int64_t>(random[1] % static_cast<std::uint64_t>(input.values));
    values[static_cast<std::size_t>(i)] =
        static_cast<std::int32_t>(ignored ? kIgnoredLabel : value);
  }
}

}  // namespace

}  // namespace tessera
