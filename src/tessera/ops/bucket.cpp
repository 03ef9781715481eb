#include "tessera/ops/bucket.h"

#include <cstddef>
#include <cstring>

#include "tessera/ops/collective.h"
#include "tessera/ops/reference.h"

namespace tessera {

namespace {

/// In elements.
std::int64_t begin_of(const OpCall& c, int operand) {
  std::int64_t out = 0;
  for (int i = 0; i < operand; ++i) out += c.in(i).numel();
  return out;
}

TensorTypes one_after_another(const OpCall& c) {
  for (int i = 1; i < c.num_in(); ++i)
    require(c.in(i).dtype == c.in(0).dtype, "bucket: operand 0 is ", c.in(0), ", operand ", i,
            " is ", c.in(i), "; cast them to one dtype");
  return {{c.in(0).dtype, Shape{begin_of(c, c.num_in())}, {}}};
}

/// What lies at its place already is not copied.
void bucket_reference(RefCall& c) {
  auto* to = static_cast<std::byte*>(c.outs[0].data);
  for (const RefOperand& in : c.ins) {
    const auto bytes = static_cast<std::size_t>(in.type.numel() * size_of(in.type.dtype));
    if (in.data != to && bytes > 0) std::memcpy(to, in.data, bytes);
    to += bytes;
  }
}

}  // namespace

constinit const OpDef kBucket = {
    .name = "bucket",
    .doc = "The elements of several values, one value after another.",
    .infer = one_after_another,
    .factors = no_factors,
    .reference = {bucket_reference, bucket_reference},
    .part = begin_of,
    .traits = {.inserted = true},
};

}  // namespace tessera
