/// What no plan takes less than, against the plans of small models.

#include "tessera/planner/room.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/small_run.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/device/device.h"
#include "tessera/planner/space.h"
#include "tessera/train/host_pool.h"
#include "tessera/train/memory_choice.h"

namespace tessera {
namespace {

struct RoomCase {
  const char* name;
  SmallRun small;
  std::int64_t devices;
  std::size_t every;  // so many plans are left out between two
};
const RoomCase kRoomCases[] = {
    {"layers are most of it", {2, 4, 128, 32, 40, 2, "h100-256"}, 4, 5},
    {"words are most of it", {2, 4, 32, 32, 4000, 2, "h100-256"}, 4, 5},
    {"in bf16", {2, 4, 32, 32, 4000, 2, "h100-256", true}, 4, 5},
    {"experts are most of it", {2, 2, 32, 32, 40, 2, "h100-256", false, 16}, 4, 5},
    {"on a CPU", {2, 2, 64, 32, 96, 4, ""}, 4, 5},
};

/// Those that take little memory: the smallest micro-batches, and on a machine with a host all or
/// nothing there.
std::vector<PlanChoice> lean_plans(const RunConfig& base, const Space& space) {
  const bool apart = host_pool_of(base) == HostPool::Apart;
  std::vector<PlanChoice> out;
  for (const PlanChoice& frame : space.frames())
    for (PlanChoice choice : space.splits(frame)) {
      if (choice.micro_batch_size > 1) continue;
      for (const std::int64_t zero : {0, 3})
        for (const Recompute what : {Recompute::Elementwise, Recompute::Selective, Recompute::Full})
          for (const bool offloads : {false, true}) {
            if ((zero > 0 && choice.data == 1) || (offloads && !apart)) continue;
            choice.zero = zero;
            choice.recompute = what;
            for (const OffloadKind& kind : kOffloadKinds) choice.offload.*kind.offloads = offloads;
            out.push_back(choice);
          }
    }
  return out;
}

TEST(Room, NoPlanTakesLess) {
  const std::unique_ptr<Device> device = make_described_device();
  for (const RoomCase& c : kRoomCases) {
    SCOPED_TRACE(c.name);
    const RunConfig base = small_run(c.small);
    const PlanQuestion question{base, base.parallel.machine, c.devices, {}};
    const Space space(base, c.devices, false);
    const LeastBytes bounds[] = {least_of_weight(question), least_of_states(question)};
    const std::vector<PlanChoice> plans = lean_plans(base, space);
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    std::size_t compared = 0;
    std::string of;
    for (std::size_t i = 0; i < plans.size(); i += c.every) {
      try {
        const RunConfig run = with(base, plans[i]);
        WantedPrograms wanted = wanted_programs(RunSetup(run));
        wanted.stages = true;
        const Compiled compiled = compile_programs(RunSetup(run), wanted, *device);
        std::int64_t bytes = 0;
        for (const Plan* plan : plans_of(compiled))
          bytes = std::max(bytes, capped_bytes(run, *plan));
        if (bytes < least) least = bytes, of = to_text(plans[i]);
        ++compared;
      } catch (const Error& error) {
        EXPECT_EQ(error.fault(), Fault::Usage) << error.what();
      }
    }
    EXPECT_GT(compared, 10U);
    for (const LeastBytes& bound : bounds) EXPECT_LE(bound.bytes, least) << bound.of << "; " << of;
  }
}

}  // namespace
}  // namespace tessera
