#pragma once
/// Offloading: what is not needed at every moment lies on the host, and is copied to the device and
/// back. It changes no number.

#include "tessera/ir/graph.h"
#include "tessera/ir/strategy.h"

namespace tessera {

/// States that `strategy.offload` names get a home on the host; so do gradients, from where
/// backward has computed them on, with what micro-batches add up to; and what forward computes and
/// backward reads.
///
/// - Forward and backward compute on the device: they read such a state through a use, which copies
///   it, for all that share the use.
/// - What backward reads of forward goes to the host as soon as it is there, and comes back once,
///   for all of backward of a chunk. A view of it is looked at anew there.
/// - An op of the update that reads something on the host runs where fewer bytes have to be copied,
///   counting operands and next values of states; on the host if that is equal. So Adam of moments
///   on the host runs there.
/// - Sums over ranks of gradients on the host are made there; all else that moves along the mesh
///   does so on the device.
///
/// In:   Form::Placed, everything on the device.
/// Out:  Form::Placed; values whose reader is in another memory are read through a `reshard` that
///       changes the memory; states in forward and backward through such a `use`.
Graph offload(const Graph& placed, const Strategy& strategy);

}  // namespace tessera
