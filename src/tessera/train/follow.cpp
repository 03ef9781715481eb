#include "tessera/train/crew.h"
#include "tessera/train/facts.h"
#include "tessera/train/free_memory.h"
#include "tessera/train/programs.h"
#include "tessera/train/run_saves.h"
#include "tessera/train/trainer.h"
#include "tessera/train/within_cap.h"

namespace tessera {

void follow(const RunConfig& config, Device& device, Communicator& world,
            const TrainOptions& options) {
  auto background = background_thread(config);
  const RunSetup setup(config);
  Plan plan = compile_programs(setup, wanted_programs(setup), device, world.rank()).plan;
  require_within_cap(config, facts_of_all(plan, &world));
  short_of_memory(config, plan, device, &world);
  RankSaver share(plan, save_options(config, options.calls), std::move(background));
  Crew crew(std::move(plan), device, &world, options.executor);
  crew.set_saver(share);
  crew.follow(options.callbacks);
}

}  // namespace tessera
