#include "tessera/train/checkpoint_schedule.h"
#include "tessera/train/free_memory.h"
#include "tessera/train/programs.h"
#include "tessera/train/rank_group.h"
#include "tessera/train/run_requirements.h"
#include "tessera/train/trainer.h"
#include "tessera/train/within_cap.h"

namespace tessera {

void follow(const RunConfig& config, const Backend& backend, Communicator& world,
            const TrainOptions& options) {
  auto background = background_thread(config);
  const RunSetup setup(config);
  Plan plan = compile_programs(setup, wanted_programs(setup), backend, world.rank()).plan;
  require_within_cap(config, requirements_of_all(plan, &world));
  if (backend.in_main_memory()) short_of_memory(config, plan, backend.device(), &world);
  RankWriter share(plan, save_options(config, options.calls), std::move(background));
  RankGroup group(std::move(plan), backend, &world, options.engine);
  group.set_writer(share);
  group.follow(options.callbacks);
}

}  // namespace tessera
