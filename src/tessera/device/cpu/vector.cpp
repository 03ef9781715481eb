#include "tessera/device/cpu/vector.h"

#include "tessera/device/cpu/vector_families.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/fused.h"
#include "tessera/ops/random.h"
#include "tessera/ops/reduce.h"

namespace tessera::cpu {

namespace {

constinit const KernelEntry kEntries[] = {
    {&kAdd, make_elementwise},        {&kSub, make_elementwise},
    {&kMul, make_elementwise},        {&kDiv, make_elementwise},
    {&kMaximum, make_elementwise},    {&kMinimum, make_elementwise},
    {&kPower, make_elementwise},      {&kNegate, make_elementwise},
    {&kExp, make_elementwise},        {&kLog, make_elementwise},
    {&kSqrt, make_elementwise},       {&kRsqrt, make_elementwise},
    {&kTanh, make_elementwise},       {&kErf, make_elementwise},
    {&kCos, make_elementwise},        {&kAbs, make_elementwise},
    {&kSigmoid, make_elementwise},    {&kRelu, make_elementwise},
    {&kSilu, make_elementwise},       {&kSiluGrad, make_elementwise},
    {&kGelu, make_elementwise},       {&kGeluGrad, make_elementwise},
    {&kEqual, make_elementwise},      {&kNotEqual, make_elementwise},
    {&kLess, make_elementwise},       {&kLessEqual, make_elementwise},
    {&kLogicalAnd, make_elementwise}, {&kLogicalOr, make_elementwise},
    {&kLogicalNot, make_elementwise}, {&kIsFinite, make_elementwise},
    {&kSelect, make_elementwise},     {&kCast, make_elementwise},
    {&kIdentity, make_elementwise},   {&kGradient, make_elementwise},
    {&kBroadcast, make_elementwise},  {&kAddN, make_elementwise},
    {&kFused, make_elementwise},      {&kDropout, make_dropout},
};

}  // namespace

std::span<const KernelEntry> vector_kernels() { return kEntries; }

bool vector_accepts_strides(const OpDef& op, int) {
  for (const KernelEntry& entry : kEntries) {
    if (entry.op == &op) return entry.make == make_elementwise;
  }
  return false;
}

}  // namespace tessera::cpu
