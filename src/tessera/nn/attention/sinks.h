#pragma once
/// Attention that may be paid to nothing.

#include "tessera/nn/transformer.h"
#include "tessera/ops/attention.h"

namespace tessera {

/// y [b, s, g, r, e] without what is paid to sinks, where the layer has any: the softmax has one more
/// score.
/// Source: Xiao et al. 2023, arXiv 2309.17453, section 3; a score for each head as in gpt-oss.
Value beside_sinks(const AttentionResult& seen, const TransformerLayer& layer, Where where);

}  // namespace tessera
