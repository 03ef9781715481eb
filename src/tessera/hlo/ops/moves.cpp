/// What moves elements without computing.

#include "tessera/hlo/op_call.h"
#include "tessera/ops/bucket.h"
#include "tessera/ops/dynamic_update.h"
#include "tessera/ops/fused.h"
#include "tessera/ops/shape_ops.h"

namespace tessera::hlo {

namespace {

void write_reshape(Writing& w) { w.out(w.code.reshape(w.in(0), w.result(0).type.shape)); }

void write_transpose(Writing& w) {
  w.out(w.code.transpose(w.in(0), w.call.integers("permutation")));
}

void write_slice(Writing& w) {
  w.out(w.code.slice(w.in(0), w.dim(), w.call.integer("start"), w.call.integer("size"),
                     w.call.integer("step")));
}

void write_pad(Writing& w) {
  const std::int64_t n = w.in(0).shape()[w.dim()], start = w.call.integer("start"),
                     step = w.call.integer("step");
  const std::int64_t used = n > 0 ? (n - 1) * step + 1 : 0;
  w.out(w.code.pad(w.in(0), w.dim(), start, w.call.integer("size") - start - used, step - 1));
}

void write_concat(Writing& w) { w.out(w.code.concat(w.ins(), w.dim())); }

void write_dynamic_slice(Writing& w) {
  w.out(w.code.dynamic_slice(w.in(0), w.dim(), w.in(1), w.result(0).type.shape));
}

void write_dynamic_pad(Writing& w) {
  const Value zeros = w.code.constant(0, w.in(0).element(), w.result(0).type.shape);
  w.out(w.code.dynamic_update(zeros, w.in(0), w.dim(), w.in(1)));
}

void write_dynamic_update(Writing& w) {
  w.out(w.code.dynamic_update(w.in(0), w.in(1), w.dim(), w.in(2)));
}

void write_bucket(Writing& w) {
  Values flat;
  for (const Value& in : w.ins()) flat.push_back(w.code.reshape(in, {in.shape().numel()}));
  w.out(w.code.concat(flat, 0));
}

constinit const Emission kMoves[] = {
    {&kReshape, write_reshape},
    {&kTranspose, write_transpose},
    {&kSlice, write_slice},
    {&kPad, write_pad},
    {&kConcat, write_concat},
    {&kDynamicSlice, write_dynamic_slice},
    {&kDynamicPad, write_dynamic_pad},
    {&kDynamicUpdate, write_dynamic_update},
    {&kBucket, write_bucket},
};

}  // namespace

std::span<const Emission> move_emissions() { return kMoves; }

}  // namespace tessera::hlo
