#pragma once
/// Calls and programs made by hand, to be priced and played.

#include <string>
#include <utility>
#include <vector>

#include "tessera/ops/elementwise.h"
#include "tessera/plan/plan.h"

namespace tessera::testing {

/// A kernel of so many operations and bytes.
inline Call kernel_call(double flops, double bytes) {
  const TensorType type{DType::F32, {4}, {}};
  const Attrs none;
  Call out;
  out.kernel =
      make_cpu_device({1, -1})->make_kernel({OpCall(kExp, {&type}, none, {&type}), {}, {}, {}, 0});
  out.flops = flops;
  out.bytes = bytes;
  return out;
}

/// The start of what `ranks` ranks do together.
inline Call transfer_call(const Collective& collective, std::vector<std::string> axes, int ranks,
                          std::int32_t ticket = -1) {
  Transfer transfer;
  transfer.collective = collective;
  transfer.axes = std::move(axes);
  for (int r = 0; r < ranks; ++r) transfer.group.ranks.push_back(r);
  Call out;
  out.transfer = std::move(transfer);
  out.ticket = ticket;
  out.ins = {Place{}};
  return out;
}

/// The wait for a transfer.
inline Call wait_call(std::int32_t ticket) {
  Call out;
  out.ticket = ticket;
  return out;
}

}  // namespace tessera::testing
