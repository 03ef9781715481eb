#pragma once
/// A look at a vendor's kernels before a run trusts them.

#include <functional>

#include "tessera/hlo/modules.h"
#include "tessera/pjrt/client.h"

namespace tessera {

/// How a node is computed: hlo::node_module, by some options.
using WriteNode = std::function<hlo::Module(const Graph& graph, NodeId id)>;

/// Small cases of attention and its gradient in bf16 on the client's first device, as `write` says
/// and by no vendor's kernels: the largest distance of a result, relative to its largest number.
/// Causal and not, two query heads on a key head.
double attention_distance(const pjrt::Client& client, const WriteNode& write);

/// Errors: Fault::Resource: kernels by `options` compute something else than attention; in whose plugin, how far
/// they lie and what is right, and how to leave them out.
void require_attention(const pjrt::Client& client, const hlo::EmitOptions& options);

}  // namespace tessera
