#include "tessera/device/cpu/vector.h"

#include "tessera/device/cpu/vector_families.h"
#include "tessera/ops/attention.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/fused.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/norm.h"
#include "tessera/ops/optimizer_ops.h"
#include "tessera/ops/random.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/softmax.h"
#include "tessera/ops/sum_squares.h"

namespace tessera::cpu {

namespace {

constinit const KernelEntry kEntries[] = {
    {&kAdd, make_elementwise},
    {&kSub, make_elementwise},
    {&kMul, make_elementwise},
    {&kDiv, make_elementwise},
    {&kMaximum, make_elementwise},
    {&kMinimum, make_elementwise},
    {&kPower, make_elementwise},
    {&kNegate, make_elementwise},
    {&kExp, make_elementwise},
    {&kLog, make_elementwise},
    {&kSqrt, make_elementwise},
    {&kRsqrt, make_elementwise},
    {&kTanh, make_elementwise},
    {&kErf, make_elementwise},
    {&kCos, make_elementwise},
    {&kAbs, make_elementwise},
    {&kSigmoid, make_elementwise},
    {&kRelu, make_elementwise},
    {&kSilu, make_elementwise},
    {&kSiluGrad, make_elementwise},
    {&kGelu, make_elementwise},
    {&kGeluGrad, make_elementwise},
    {&kEqual, make_elementwise},
    {&kNotEqual, make_elementwise},
    {&kLess, make_elementwise},
    {&kLessEqual, make_elementwise},
    {&kLogicalAnd, make_elementwise},
    {&kLogicalOr, make_elementwise},
    {&kLogicalNot, make_elementwise},
    {&kIsFinite, make_elementwise},
    {&kSelect, make_elementwise},
    {&kCast, make_elementwise},
    {&kIdentity, make_elementwise},
    {&kGradient, make_elementwise},
    {&kBroadcast, make_elementwise},
    {&kAddN, make_elementwise},
    {&kFused, make_elementwise},
    {&kDropout, make_dropout},
    {&kRandomNormal, make_random},
    {&kRandomUniform, make_random},
    {&kLayerNorm, make_norm},
    {&kRmsNorm, make_norm},
    {&kLayerNormGrad, make_norm_grad},
    {&kRmsNormGrad, make_norm_grad},
    {&kSoftmax, make_softmax},
    {&kCrossEntropy, make_cross_entropy},
    {&kCrossEntropyGrad, make_cross_entropy_grad},
    {&kSum, make_reduce},
    {&kMax, make_reduce},
    {&kSumSquares, make_reduce},
    {&kAdam, make_adam},
    {&kLambDirection, make_lamb},
    {&kSgd, make_sgd},
    {&kRope, make_rope},
    {&kGather, make_gather},
    {&kScatterAdd, make_scatter_add},
    {&kReshape, make_copy},
    {&kTranspose, make_copy},
    {&kSlice, make_copy},
    {&kDynamicSlice, make_copy},
    {&kDynamicPad, make_copy},
    {&kConcat, make_copy},
    {&kPad, make_copy},
    {&kShard, make_copy},
    {&kClearPadding, make_clear_padding},
};

}  // namespace

std::span<const KernelEntry> vector_kernels() { return kEntries; }

bool all_dense(const KernelRequest& request) {
  for (int i = 0; i < request.call.num_in(); ++i) {
    if (!is_dense(request, i)) return false;
  }
  return true;
}

bool first_are_f32(const KernelRequest& request, int count) {
  for (int i = 0; i < count; ++i) {
    if (request.call.in(i).dtype != DType::F32) return false;
  }
  return true;
}

bool vector_accepts_strides(const OpDef& op, int operand) {
  for (const KernelEntry& entry : kEntries) {
    if (entry.op == &op)
      return entry.make == make_elementwise || entry.make == make_copy ||
             (entry.make == make_rope && operand == 0);
  }
  return false;
}

}  // namespace tessera::cpu
