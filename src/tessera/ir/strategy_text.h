#pragma once
/// The text form of strategies: one decision a line, so that they can be read, compared and kept.

#include <string>
#include <string_view>

#include "tessera/ir/strategy.h"

namespace tessera {

/// These lines; those that decide nothing are left out, but for the first two:
///
///   mesh dp=2 tp=2 mb=4@time
///   batch [dp.mb,-]                            the split of all batch inputs
///   major tp dp mb                             the order of axes that split one dim
///   pin *.attn.qkv.weight [tp,-]               of states and named values, one a line
///   pin? *.residual [dp.mb,-,-]                the same, and it may match nothing
///   op layers.0.mlp ins [dp,-] [-,tp] outs [dp,tp]
///   moments dp                                 ZeRO: and "gradients", "parameters"
///   cut loss_by_row                            an output that leaves as it is cut
///   pipeline zb-v stages=2 chunks=2
///   chunk layers.3 0                           a block by hand
///   recompute layers.* full                    or "selective", "none"
///   host moments gradients parameters          what lies on the host: some of these
///   bucket 26214400                            bytes of gradients that are summed together
///   group layers.3.* 2                         gradients by hand: those of group 2 together
std::string to_text(const Strategy& strategy);

/// Lines in any order; empty ones and those that begin with '#' are skipped. The last of several
/// lines "mesh", "batch", "major", "moments", "gradients", "parameters", "pipeline" and
/// "bucket" holds.
/// Errors: an unknown line; one that is not as above, with the line.
Strategy parse_strategy(std::string_view text);

}  // namespace tessera
