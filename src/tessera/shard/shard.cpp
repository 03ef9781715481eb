#include "tessera/shard/shard.h"

#include "tessera/ir/builder.h"

namespace tessera {

Value shard(Value value, Splits ins, Splits outs) {
  value.builder().note(value, OpShard{"", std::move(ins), std::move(outs)});
  return value;
}

Value shard(Value value, std::vector<TensorLayout> ins, std::vector<TensorLayout> outs) {
  value.builder().note(value, OpShard{"", {}, {}, std::move(ins), std::move(outs)});
  return value;
}

std::vector<OpShard> shards_of(const Builder& builder) {
  std::vector<OpShard> out;
  for (const Builder::Note& note : builder.notes()) {
    const auto* shard = std::any_cast<OpShard>(&note.what);
    if (shard == nullptr) continue;
    out.push_back(*shard);
    out.back().ops = note.op;
  }
  return out;
}

}  // namespace tessera
