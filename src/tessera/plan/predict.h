#pragma once
/// How long a step will take on a machine: its plans played as the executor runs them.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/plan/plan.h"
#include "tessera/tensor/machine.h"

namespace tessera {

/// The parts that a step's time is divided into.
enum class TimePart : std::uint8_t {
  Products,      // matrix products and attention
  OtherKernels,  // all other kernels
  Inner,         // sums that finish partial results of ops: all_reduce, reduce_scatter
  Inter,         // all else that moves between ops of a stage
  Data,          // along axes that cut the batch: gradients and states
  Messages,      // between stages
  HostCopies     // between the memories of devices and of the host
};
inline constexpr std::size_t kNumTimeParts = 7;
/// "products", "other kernels", "inner", "inter", "data", "messages", "host copies"
std::string_view to_text(TimePart part);
/// Seconds by TimePart.
using PartSeconds = std::array<double, kNumTimeParts>;

/// One run of a region, in a micro-batch that is neither the first nor the last where there is one.
struct RegionSeconds {
  int stage = 0;
  RegionKind region = RegionKind::Forward;
  int chunk = 0;
  double seconds = 0;  // with what it waits for
};

/// All in seconds. `exposed` and `bubble` of the stage that works longest add up to `seconds`.
struct Prediction {
  double seconds = 0;     // of a step
  PartSeconds exposed{};  // while nothing else of the stage ran
  PartSeconds whole{};    // as if nothing ran beside anything; messages: those that it sends
  double bubble = 0;      // the stage has nothing to do
  std::vector<RegionSeconds> regions;
};

/// Plays the program on the first ranks of all stages, each of which stands for all ranks of its
/// stage. A kernel takes the device for its price. What moves starts at its start, uses the links
/// of every level that it crosses, or those to the host, one at a time and in order, and ends
/// before its wait does; on a machine without DeviceSpeed::overlap it moves during the wait. The
/// micro-batches follow Pipeline::play with these times and with messages at their prices; Begin
/// comes before, Update behind, where stages that are told something by others wait for all.
/// Where devices share cores, stages that wait leave their turns to others (plan/share_cores.h).
/// CostWeights multiply: alpha kernels, beta1 Inner, beta2 Inter and messages, gamma Data.
Prediction predict(std::span<const Plan* const> stages, std::string_view program,
                   const Pipeline& pipeline, const Machine& machine);
Prediction predict(const std::vector<Plan>& stages, std::string_view program,
                   const Pipeline& pipeline, const Machine& machine);

/// The pipeline of a program, from its plans on the first ranks of all stages.
Pipeline pipeline_of(std::span<const Plan* const> stages, std::string_view program);

/// The prices with which predict plays micro-batches: messages are received and sent as in plans,
/// receives are posted ahead, and as many sends are under way as there are places for them.
PlayOptions prices_of(std::span<const Plan* const> stages, std::string_view program,
                      const Pipeline& pipeline, const Machine& machine);

}  // namespace tessera
