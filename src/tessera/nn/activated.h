#pragma once
/// What stands between the products of a feed-forward part, of one or of experts.

#include <string_view>

#include "tessera/nn/transformer.h"
#include "tessera/ops/elementwise.h"

namespace tessera {

/// act(up), or act(gate) * up: `widened` makes each of the two by its name.
template <typename Widened>
Value activated(FeedForward kind, const Widened& widened) {
  switch (kind) {
    case FeedForward::Relu: return relu(widened("up"));
    case FeedForward::Silu: return silu(widened("up"));
    case FeedForward::GeluErf: return gelu(widened("up"), GeluForm::Erf);
    case FeedForward::GeluTanh: return gelu(widened("up"), GeluForm::Tanh);
    default: break;
  }
  const Value gate = widened("gate"), up = widened("up");
  if (kind == FeedForward::CappedSwiGlu) {
    constexpr double kCap = 7, kSlope = 1.702;
    Builder& builder = gate.builder();
    const Value most = builder.constant(kCap), least = builder.constant(-kCap),
                capped = minimum(gate, most), within = maximum(minimum(up, most), least);
    return capped * sigmoid(capped * kSlope) * (within + 1.0);
  }
  const Value open = kind == FeedForward::SwiGlu  ? silu(gate)
                     : kind == FeedForward::GeGlu ? gelu(gate, GeluForm::Tanh)
                                                  : gelu(gate, GeluForm::Erf);
  return open * up;
}

/// A feed-forward part in the block at hand: feed_forward (nn/transformer.h) without one of its own.
Value feed_forward_of(Value x, const TransformerLayer& layer, const Pass& pass, Where where);

}  // namespace tessera
