#include "tessera/ops/table.h"

#include <array>

#include "tessera/ir/builder.h"
#include "tessera/ops/attention.h"
#include "tessera/ops/bucket.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/dynamic_update.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/fused.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/norm.h"
#include "tessera/ops/optimizer_ops.h"
#include "tessera/ops/pack.h"
#include "tessera/ops/random.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/softmax.h"
#include "tessera/ops/sum_squares.h"
#include "tessera/ops/top_k.h"

namespace tessera {

namespace {

constinit const std::array kOps = {
    &kBatch, &kState, &kSlot, &kReceive, &kConstant, &kPack,
    // where a value lies
    &kReshard, &kUse, &kShard, &kMarkPartial, &kCopy, &kAllReduce, &kAllGather, &kReduceScatter,
    &kDispatch, &kCombine, &kAllToAll, &kPermute, &kClearPadding, &kBucket,
    // elementwise
    &kAdd, &kSub, &kMul, &kDiv, &kMaximum, &kMinimum, &kPower, &kNegate, &kExp, &kLog, &kSqrt,
    &kRsqrt, &kTanh, &kErf, &kCos, &kAbs, &kSigmoid, &kIdentity, &kWholeBatch, &kStopGradient,
    &kGradient, &kRelu, &kSilu, &kSiluGrad, &kGelu, &kGeluGrad, &kEqual, &kNotEqual, &kLess,
    &kLessEqual, &kLogicalAnd, &kLogicalOr, &kLogicalNot, &kIsFinite, &kSelect, &kCast,
    // reductions, broadcasting
    &kSum, &kMax, &kMin, &kBroadcast, &kAddN, &kSumSquares,
    // shape
    &kReshape, &kTranspose, &kSlice, &kDynamicSlice, &kDynamicPad, &kDynamicUpdate, &kConcat, &kPad,
    // index
    &kGather, &kScatterAdd, &kPick, &kPlace, &kTakeAlong, &kAddAlong, &kTopK, &kWithinCapacity,
    &kOneHot, &kIota,
    // random
    &kDropout, &kRandomUniform, &kRandomNormal, &kRandomTruncatedNormal,
    // contraction, normalisation, attention, loss
    &kMatmul, &kGroupedMatmul, &kGroupedOuter, &kLayerNorm, &kLayerNormGrad, &kRmsNorm,
    &kRmsNormGrad, &kSoftmax, &kCrossEntropy, &kCrossEntropyGrad, &kLogSoftmax, &kAttention,
    &kAttentionGrad, &kMergeAttention, &kRope,
    // optimizer updates
    &kAdam, &kLambDirection, &kSgd,
    // made by passes
    &kFused};

}  // namespace

std::span<const OpDef* const> all_ops() { return kOps; }

const OpDef* find_op(std::string_view name) {
  for (const OpDef* op : kOps) {
    if (op->name == name) return op;
  }
  return nullptr;
}

}  // namespace tessera
