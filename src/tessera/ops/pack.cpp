#include "tessera/ops/pack.h"

#include <algorithm>
#include <cstddef>

#include "tessera/ops/reference.h"

namespace tessera {

namespace {

void pack_reference(RefCall& c) {
  const auto* from = static_cast<const std::byte*>(c.ins[0].data);
  std::copy_n(from, c.in_shape(0).numel() * size_of(c.ins[0].type.dtype),
              static_cast<std::byte*>(c.outs[0].data));
}

}  // namespace

constinit const OpDef kPack = {
    .name = "pack",
    .doc = "The same numbers in a device's own layout.",
    .attrs = {{"tag", AttrKind::Text}, {"bytes", AttrKind::Int}},
    .infer = [](const OpCall& c) -> TensorTypes {
      require(c.in(0).layout.plain(), "pack: the operand is ", c.in(0),
              ", which is packed already");
      return {{c.in(0).dtype, c.in(0).shape, {c.string("tag"), c.integer("bytes")}}};
    },
    .factors = [](const OpCall& c) -> Factors { return Factors::parse("... -> ...", c.ndims()); },
    .reference = {pack_reference, pack_reference},
    .traits = {.inserted = true},
};

}  // namespace tessera
