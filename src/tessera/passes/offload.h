#pragma once
/// Offloading: what is not needed at every moment lies on the host, and is copied to the device and
/// back. It changes no number.

#include "tessera/ir/graph.h"
#include "tessera/ir/strategy.h"

namespace tessera {

/// States that `offload` names get a home on the host; so do gradients, from where backward has
/// computed them on, with what micro-batches add up to.
///
/// - Forward and backward compute on the device: they read such a state through a use, which copies
///   it, for each phase and chunk.
/// - An op of the update that reads something on the host runs where fewer bytes have to be copied,
///   counting operands and next values of states; on the host if that is equal. So Adam of moments
///   on the host runs there.
/// - Sums over ranks of gradients on the host are made there; all else that moves along the mesh
///   does so on the device.
///
/// In:   Form::Placed, everything on the device.
/// Out:  Form::Placed; values whose reader is in another memory are read through a `reshard`
/// (states
///       in forward and backward: a `use`) that changes the memory.
Graph offload(const Graph& placed, const OffloadStrategy& offload);

}  // namespace tessera
