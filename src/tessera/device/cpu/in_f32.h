#pragma once
/// Calls on 16-bit floats as they are computed: the same calls in f32.

#include <vector>

#include "tessera/ir/op_def.h"

namespace tessera::cpu {

/// True where an operand or a result is a 16-bit float.
bool has_16_bit(const OpCall& call);

TensorType in_f32(TensorType type);
/// Dtypes that they name. The body of a fused op stays: it says where its values are rounded.
Attrs in_f32(Attrs attrs);

/// A call whose 16-bit floats are f32 instead; others stay what they are. It owns what it speaks
/// of.
class CallInF32 {
 public:
  explicit CallInF32(const OpCall& from);
  CallInF32(const CallInF32&) = delete;
  CallInF32& operator=(const CallInF32&) = delete;
  const OpCall& operator*() const { return call_; }
  const OpCall* operator->() const { return &call_; }

 private:
  std::vector<TensorType> ins_, outs_;
  Attrs attrs_;
  OpCall call_;
};

}  // namespace tessera::cpu
