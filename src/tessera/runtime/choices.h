#pragma once
/// Ranks on unlike processors compute the same bits: their devices are made from one value.

#include "tessera/comm/communicator.h"
#include "tessera/device/device.h"

namespace tessera {

/// What every rank makes its device from, where `mine` is what this rank could take: the lowest
/// instruction set among the ranks, and for the rest what rank 0 takes. All ranks call it; `world`
/// is nullptr where there is one.
CpuChoices common_choices(const CpuChoices& mine, Communicator* world);

}  // namespace tessera
