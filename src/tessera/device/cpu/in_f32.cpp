#include "tessera/device/cpu/in_f32.h"

#include <algorithm>

namespace tessera::cpu {

namespace {

std::vector<TensorType> types_in_f32(const OpCall& from, int n,
                                     const TensorType& (OpCall::*get)(int) const) {
  std::vector<TensorType> out;
  for (int i = 0; i < n; ++i) out.push_back(in_f32((from.*get)(i)));
  return out;
}

OpCall::Types pointers_to(const std::vector<TensorType>& types) {
  OpCall::Types out;
  for (const TensorType& type : types) out.push_back(&type);
  return out;
}

}  // namespace

bool has_16_bit(const OpCall& call) {
  for (int i = 0; i < call.num_in(); ++i) {
    if (is_16_bit(call.in(i).dtype)) return true;
  }
  for (int i = 0; i < call.num_out(); ++i) {
    if (is_16_bit(call.out(i).dtype)) return true;
  }
  return false;
}

TensorType in_f32(TensorType type) {
  type.dtype = computed_in(type.dtype);
  return type;
}

Attrs in_f32(Attrs attrs) {
  for (std::size_t i = 0; i < attrs.size(); ++i) {
    if (const auto* dtype = std::get_if<DType>(&attrs[i]))
      attrs = attrs.with(i, computed_in(*dtype));
  }
  return attrs;
}

CallInF32::CallInF32(const OpCall& from)
    : ins_(types_in_f32(from, from.num_in(), &OpCall::in)),
      outs_(types_in_f32(from, from.num_out(), &OpCall::out)),
      attrs_(in_f32(from.attrs())),
      call_(from.op(), pointers_to(ins_), attrs_, pointers_to(outs_)) {}

}  // namespace tessera::cpu
