#include "tessera/train/timed_steps.h"

#include <chrono>

#include "tessera/models/family.h"
#include "tessera/train/crew.h"
#include "tessera/train/programs.h"
#include "tessera/train/random_inputs.h"

namespace tessera {

std::vector<double> time_steps(const RunConfig& config, std::int64_t steps, Device& device,
                               Communicator* world) {
  using Clock = std::chrono::steady_clock;
  const WantedPrograms wanted{.evaluate = false, .texts = 0};
  const int rank = world == nullptr ? 0 : world->rank();
  Crew crew(compile_programs(config, wanted, device, rank).plan, device, world, {.poison = false});
  std::vector<double> out;
  if (rank > 0) {
    crew.follow();
    return out;
  }
  const Task task = task_of(config.model);
  crew.run(kInitProgram);
  for (std::int64_t step = 0; step <= steps; ++step) {
    crew.set_step(step + 1);
    const Clock::time_point begin = Clock::now();
    crew.run(kTrainProgram, [&](BatchInputs& batch) {
      for (const TaskInput& input : task.inputs)
        fill_randomly(input, static_cast<std::uint64_t>(config.seed), step, batch);
    });
    if (step > 0) out.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  crew.dismiss();
  return out;
}

}  // namespace tessera
