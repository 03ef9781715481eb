#include "tessera/ops/collective.h"

#include <algorithm>
#include <cstddef>

#include "tessera/ops/reference.h"

namespace tessera {

namespace {

void shard_reference(RefCall& c) {
  const RefOperand &from = c.ins[0], &to = c.outs[0];
  const Shape strides = from.type.shape.strides();
  const int size = size_of(from.type.dtype);
  const auto* source = static_cast<const std::byte*>(from.data);
  auto* target = static_cast<std::byte*>(to.data);
  for_each_index(to.type.shape, [&](const Shape& at, std::int64_t i) {
    std::int64_t offset = 0;
    bool inside = true;
    for (int d = 0; d < at.ndim(); ++d) {
      const std::int64_t position = at[d] + to.offset[d] - from.offset[d];
      inside = inside && position < from.type.shape[d];
      offset += position * strides[d];
    }
    if (inside) std::copy_n(source + offset * size, size, target + i * size);
  });
}

}  // namespace

constinit const OpDef kShard = {
    .name = "shard",
    .doc = "This rank's part of a dim of a value that is whole along a mesh axis.",
    .attrs = {{"axis", AttrKind::Text}, {"dim", AttrKind::Int}, {"shape", AttrKind::Ints}},
    .infer = [](const OpCall& c) -> TensorTypes {
      return {{c.in(0).dtype, Shape(c.integers("shape")), {}}};
    },
    .factors = [](const OpCall& c) -> Factors {
      Factors rule = Factors::parse("... -> ... | each 0", c.ndims());
      rule.list[static_cast<std::size_t>(
                    rule.outs[0][static_cast<std::size_t>(c.integer("dim"))][0])]
          .kind = FactorKind::Whole;
      return rule;
    },
    .reference = {shard_reference, shard_reference},
    .traits = {.collective = true},
};

}  // namespace tessera
