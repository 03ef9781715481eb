#include "tessera/device/cpu/vector_optimizer.h"

#include <cstring>

#include "tessera/device/cpu/vector_families.h"
#include "tessera/device/cpu/vector_targets.h"
#include "tessera/ops/optimizer_ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/device/cpu/vector_optimizer.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tessera/device/cpu/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {
namespace {

const float* in(const TileCall& c, int i) { return static_cast<const float*>(c.in[i]); }
float* out(const TileCall& c, int i) { return static_cast<float*>(i == 0 ? c.out : c.more[i - 1]); }

}  // namespace

void adam_tile(const AdamRule& a, const TileCall& c) {
  const hn::ScalableTag<float> d;
  const auto beta1 = hn::Set(d, a.beta1), beta2 = hn::Set(d, a.beta2);
  const auto rest1 = hn::Set(d, 1.0f - a.beta1), rest2 = hn::Set(d, 1.0f - a.beta2);
  const auto lr = hn::Set(d, *in(c, 4)), scale = hn::Set(d, *in(c, 5)), eps = hn::Set(d, a.eps);
  const auto inverse1 = hn::Set(d, 1.0f / *in(c, 6)), inverse2 = hn::Set(d, 1.0f / *in(c, 7));
  const auto to_gradient = hn::Set(d, a.decoupled ? 0.0f : a.decay),
             to_step = hn::Set(d, a.decoupled ? a.decay : 0.0f);
  each_vector(d, c.n, [&](auto load, auto store) HWY_ATTR {
    const auto p = load(in(c, 0));
    const auto g = hn::MulAdd(load(in(c, 3)), scale, hn::Mul(to_gradient, p));
    const auto m = hn::MulAdd(beta1, load(in(c, 1)), hn::Mul(rest1, g));
    const auto v = hn::MulAdd(beta2, load(in(c, 2)), hn::Mul(hn::Mul(rest2, g), g));
    const auto root = hn::Add(hn::Sqrt(hn::Mul(v, inverse2)), eps);
    const auto step = hn::MulAdd(to_step, p, hn::Div(hn::Mul(m, inverse1), root));
    store(hn::NegMulAdd(lr, step, p), out(c, 0));
    store(m, out(c, 1));
    store(v, out(c, 2));
  });
}

void lamb_tile(const LambRule& a, const TileCall& c) {
  const hn::ScalableTag<float> d;
  const auto beta1 = hn::Set(d, a.beta1), beta2 = hn::Set(d, a.beta2);
  const auto rest1 = hn::Set(d, 1.0f - a.beta1), rest2 = hn::Set(d, 1.0f - a.beta2);
  const auto scale = hn::Set(d, *in(c, 4)), eps = hn::Set(d, a.eps), decay = hn::Set(d, a.decay);
  const auto inverse1 = hn::Set(d, 1.0f / *in(c, 5)), inverse2 = hn::Set(d, 1.0f / *in(c, 6));
  each_vector(d, c.n, [&](auto load, auto store) HWY_ATTR {
    const auto p = load(in(c, 0)), g = hn::Mul(load(in(c, 3)), scale);
    const auto m = hn::MulAdd(beta1, load(in(c, 1)), hn::Mul(rest1, g));
    const auto v = hn::MulAdd(beta2, load(in(c, 2)), hn::Mul(hn::Mul(rest2, g), g));
    const auto root = hn::Add(hn::Sqrt(hn::Mul(v, inverse2)), eps);
    store(hn::MulAdd(decay, p, hn::Div(hn::Mul(m, inverse1), root)), out(c, 0));
    store(m, out(c, 1));
    store(v, out(c, 2));
  });
}

void sgd_tile(const SgdRule& a, const TileCall& c) {
  const hn::ScalableTag<float> d;
  const auto lr = hn::Set(d, *in(c, 3)), scale = hn::Set(d, *in(c, 4));
  const auto momentum = hn::Set(d, a.momentum), decay = hn::Set(d, a.decay);
  each_vector(d, c.n, [&](auto load, auto store) HWY_ATTR {
    const auto p = load(in(c, 0));
    const auto g = hn::MulAdd(load(in(c, 2)), scale, hn::Mul(decay, p));
    const auto u = hn::MulAdd(momentum, load(in(c, 1)), g);
    store(hn::NegMulAdd(lr, a.nesterov ? hn::MulAdd(momentum, u, g) : u, p), out(c, 0));
    store(u, out(c, 1));
  });
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

namespace {

HWY_EXPORT(adam_tile);
HWY_EXPORT(lamb_tile);
HWY_EXPORT(sgd_tile);

float number(const OpCall& call, std::string_view name) {
  return static_cast<float>(call.number(name));
}

/// A skipped step: results that are new values of operands 0, 1 and so on are those.
void keep(const TileCall& c, int results, int first = 0) {
  for (int i = first; i < results; ++i) {
    void* const to = i == 0 ? c.out : c.more[i - 1];
    if (to != c.in[i]) std::memcpy(to, c.in[i], static_cast<std::size_t>(c.n) * sizeof(float));
  }
}

bool is_ok(const TileCall& c, int i) { return *static_cast<const bool*>(c.in[i]); }

void adam(const TileCall& c) {
  if (!is_ok(c, 8)) return keep(c, 3);
  HWY_DYNAMIC_DISPATCH(adam_tile)(*static_cast<const AdamRule*>(c.extra), c);
}

void lamb(const TileCall& c) {
  if (is_ok(c, 7))
    return HWY_DYNAMIC_DISPATCH(lamb_tile)(*static_cast<const LambRule*>(c.extra), c);
  std::memset(c.out, 0, static_cast<std::size_t>(c.n) * sizeof(float));
  keep(c, 3, 1);
}

void sgd(const TileCall& c) {
  if (!is_ok(c, 5)) return keep(c, 2);
  HWY_DYNAMIC_DISPATCH(sgd_tile)(*static_cast<const SgdRule*>(c.extra), c);
}

}  // namespace

bool is_update(const OpDef& op) { return &op == &kAdam || &op == &kLambDirection || &op == &kSgd; }

Tiling update_tiling(const OpCall& call) {
  if (call.in(0).dtype != DType::F32) return {};
  const auto beta1 = [&] { return number(call, "beta1"); };
  const auto beta2 = [&] { return number(call, "beta2"); };
  if (&call.op() == &kSgd)
    return {sgd,
            std::make_shared<SgdRule>(SgdRule{
                number(call, "momentum"), number(call, "weight_decay"), call.flag("nesterov")})};
  const float eps = number(call, "eps"), decay = number(call, "weight_decay");
  if (&call.op() == &kLambDirection)
    return {lamb, std::make_shared<LambRule>(LambRule{beta1(), beta2(), eps, decay})};
  return {adam, std::make_shared<AdamRule>(
                    AdamRule{beta1(), beta2(), eps, decay, call.flag("decoupled")})};
}

}  // namespace tessera::cpu
#endif
