#pragma once
/// Times of kernels, collectives and copies on the ranks of a world, from which a machine is
/// fitted.

#include <cstdint>
#include <vector>

#include "tessera/comm/communicator.h"
#include "tessera/device/device.h"
#include "tessera/tensor/machine.h"

namespace tessera {

/// A kernel, from when all ranks begin with it to when all are done: where ranks take turns at a
/// core, with the turns of the others.
struct KernelSample {
  KernelWork work;
  double seconds = 0;
};
/// Products of operands of that dtype, small to large. `world`: nullptr for one rank; all ranks
/// call these together.
std::vector<KernelSample> time_products(Device& device, Communicator* world, DType dtype);
/// Attention and its gradient on such floats.
std::vector<KernelSample> time_attention(Device& device, Communicator* world, DType dtype);
/// Sums of two arrays, in place of one, which compute next to nothing: of a few numbers, and of
/// sizes beyond what a core's own caches hold, as the operands of most kernels of a step are in none
/// of these.
std::vector<KernelSample> time_streams(Device& device, Communicator* world);
/// Kernels of many operations per element that steps spend most time in (GELU, norms, dropout), on
/// what caches hold.
std::vector<KernelSample> time_arithmetic(Device& device, Communicator* world, DType dtype);

/// A collective while all groups of so many neighbours do the same.
struct MoveSample {
  std::int64_t ranks = 1;
  double bytes = 0;  // that a rank sends
  double steps = 1;
  double seconds = 0;
};
/// all_reduce and all_gather over groups of every size that divides the world, of what the ranks
/// have just written; none for one rank.
std::vector<MoveSample> time_moves(Device& device, Communicator* world);
/// Copies between the memories of the device and the host.
std::vector<MoveSample> time_copies(Device& device, Communicator* world);

}  // namespace tessera
