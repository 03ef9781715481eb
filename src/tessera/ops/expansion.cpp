#include "tessera/ops/expansion.h"

#include "tessera/ops/elementwise.h"

namespace tessera {

std::vector<Value> expansion(const OpCall& call, const std::vector<Value>& ins) {
  std::vector<Value> wide, outs(static_cast<std::size_t>(call.num_out()));
  for (const Value& in : ins) wide.push_back(cast(in, computed_in(in.dtype())));
  ExpandCall parts(call, wide, outs);
  call.op().expand(parts);
  for (int j = 0; j < call.num_out(); ++j) {
    Value& out = outs[static_cast<std::size_t>(j)];
    if (out.valid()) out = cast(out, call.out(j).dtype);
  }
  return outs;
}

}  // namespace tessera
