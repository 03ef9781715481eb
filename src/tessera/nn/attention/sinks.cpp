#include "tessera/nn/attention/sinks.h"

#include "tessera/nn/in_f32.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

Value beside_sinks(const AttentionResult& seen, const TransformerLayer& layer, Where where) {
  if (!layer.sinks) return seen.y;
  const Shape& shape = seen.y.shape();
  Builder& builder = seen.y.builder();
  const Shape heads{shape[2] * shape[3]};
  Value sinks;
  {
    const Scope scope(builder, "sinks", where);
    sinks = builder.state("weight", {DType::F32, heads, {}}, Role::Parameter, layer.init.of(heads),
                          where);
  }
  const Value score = reshape(in_f32(sinks), {shape[2], shape[3], 1}, where),
              paid = sigmoid(seen.logsumexp - score);  // [b, g, r, s]
  return seen.y *
         reshape(transpose(paid, {0, 3, 1, 2}), {shape[0], shape[1], shape[2], shape[3], 1}, where);
}

}  // namespace tessera
