#include "tessera/device/cpu/vector.h"

#include "tessera/device/cpu/vector_families.h"
#include "tessera/ops/attention.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/dynamic_update.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/norm.h"
#include "tessera/ops/optimizer_ops.h"
#include "tessera/ops/random.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/softmax.h"
#include "tessera/ops/sum_squares.h"
#include "tessera/ops/top_k.h"

namespace tessera::cpu {

namespace {

constexpr bool kAnyDType = true;

constinit const KernelEntry kVectorKernels[] = {
    {&kDropout, make_dropout, Isa::Baseline, kAnyDType},
    {&kRandomNormal, make_random},
    {&kRandomUniform, make_random},
    {&kRandomTruncatedNormal, make_random},
    {&kLayerNorm, make_rows, Isa::Baseline, kAnyDType},
    {&kRmsNorm, make_rows, Isa::Baseline, kAnyDType},
    {&kLayerNormGrad, make_rows, Isa::Baseline, kAnyDType},
    {&kRmsNormGrad, make_rows, Isa::Baseline, kAnyDType},
    {&kSoftmax, make_softmax, Isa::Baseline, kAnyDType},
    {&kCrossEntropy, make_cross_entropy, Isa::Baseline, kAnyDType},
    {&kCrossEntropyGrad, make_cross_entropy_grad, Isa::Baseline, kAnyDType},
    {&kSum, make_rows, Isa::Baseline, kAnyDType},
    {&kSum, make_reduce, Isa::Baseline, kAnyDType},
    {&kMax, make_reduce, Isa::Baseline, kAnyDType},
    {&kMin, make_reduce, Isa::Baseline, kAnyDType},
    {&kSumSquares, make_reduce, Isa::Baseline, kAnyDType},
    {&kAdam, make_adam, Isa::Baseline, kAnyDType},
    {&kLambDirection, make_lamb},
    {&kSgd, make_sgd, Isa::Baseline, kAnyDType},
    {&kRope, make_rope},
    {&kMergeAttention, make_merge_attention, Isa::Baseline, kAnyDType},
    {&kGather, make_gather, Isa::Baseline, kAnyDType},
    {&kPick, make_pick, Isa::Baseline, kAnyDType},
    {&kScatterAdd, make_scatter_add},
    {&kTopK, make_top_k},
    {&kReshape, make_copy, Isa::Baseline, kAnyDType},
    {&kTranspose, make_copy, Isa::Baseline, kAnyDType},
    {&kSlice, make_copy, Isa::Baseline, kAnyDType},
    {&kDynamicSlice, make_copy, Isa::Baseline, kAnyDType},
    {&kDynamicPad, make_copy, Isa::Baseline, kAnyDType},
    {&kConcat, make_copy, Isa::Baseline, kAnyDType},
    {&kPad, make_copy, Isa::Baseline, kAnyDType},
    {&kShard, make_copy, Isa::Baseline, kAnyDType},
    {&kClearPadding, make_clear_padding, Isa::Baseline, kAnyDType},
    {&kDynamicUpdate, make_dynamic_update, Isa::Baseline, kAnyDType},
    {nullptr, make_elementwise, Isa::Baseline, kAnyDType},
};

}  // namespace

std::span<const KernelEntry> vector_kernels() { return kVectorKernels; }

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
  for (const KernelEntry& entry : kVectorKernels) {
    if (entry.op == &op)
      return entry.make == make_copy || (entry.make == make_rope && operand == 0) ||
             (entry.make == make_dynamic_update && operand == 1);
  }
  return is_elementwise(op);
}

}  // namespace tessera::cpu
