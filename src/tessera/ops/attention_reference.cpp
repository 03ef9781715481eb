#include "tessera/ops/attention_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tessera/base/philox.h"
#include "tessera/ops/attention_sight.h"

namespace tessera {

namespace {

/// One call's sizes, what a query sees, and its dropout.
template <typename T>
class Heads {
 public:
  /// `first` is the operand q; k and v follow it; `extras` is the number of operands before mask,
  /// slopes and step.
  Heads(const RefCall& c, std::size_t first, int extras)
      : q(c.ins[first]),
        k(c.ins[first + 1]),
        B(q.type.shape[0]),
        S(q.type.shape[1]),
        G(q.type.shape[2]),
        R(q.type.shape[3]),
        E(q.type.shape[4]),
        K(k.type.shape[1]),
        scale(static_cast<T>(c.call.number("scale"))),
        sight_(sight_of(c.call)),
        cap_(static_cast<T>(c.call.number_or("cap", 0))),
        dropout_(c.call.number("dropout")),
        key_(c.key) {
    if (c.call.flag("mask")) {
      mask_ = c.in<bool>(extras);
      mask_of_queries_ = c.in_shape(extras).ndim() == 3;
    }
    extras += mask_ != nullptr;
    if (c.call.flag_or("slopes", false)) slopes_ = c.in<T>(extras++);
    if (dropout_ > 0) step_ = static_cast<std::uint64_t>(*c.in<std::int64_t>(extras));
  }

  /// Calls f(b, g, r, s) for each row of scores.
  template <typename F>
  void each_row(F&& f) const {
    for_each_index({B, G, R, S},
                   [&](const Shape& at, std::int64_t) { f(at[0], at[1], at[2], at[3]); });
  }
  std::int64_t query(std::int64_t b, std::int64_t g, std::int64_t r, std::int64_t s) const {
    return (((b * S + s) * G + g) * R + r) * E;
  }
  std::int64_t key(std::int64_t b, std::int64_t g, std::int64_t t) const {
    return ((b * K + t) * G + g) * E;
  }
  std::int64_t row(std::int64_t b, std::int64_t g, std::int64_t r, std::int64_t s) const {
    return ((b * G + g) * R + r) * S + s;
  }
  bool seen(std::int64_t b, std::int64_t s, std::int64_t t) const {
    const std::int64_t row = mask_of_queries_ ? b * S + s : b;
    if (mask_ != nullptr && !mask_[row * K + t]) return false;
    return sight_.sees(ahead(s, t));
  }
  /// What is added to a score.
  T sloped(std::int64_t g, std::int64_t r, std::int64_t s, std::int64_t t) const {
    return slopes_ == nullptr ? T(0) : slopes_[g * R + r] * static_cast<T>(ahead(s, t));
  }
  /// What dropout multiplies a probability with.
  T kept(std::int64_t b, std::int64_t g, std::int64_t r, std::int64_t s, std::int64_t t) const {
    if (dropout_ == 0) return 1;
    std::int64_t index = q.offset[0] + b;
    index = index * q.global[2] + q.offset[2] + g;
    index = index * q.global[3] + q.offset[3] + r;
    index = index * q.global[1] + q.offset[1] + s;
    index = index * k.global[1] + k.offset[1] + t;
    const std::uint32_t bits = philox_bits(key_, static_cast<std::uint64_t>(index), step_);
    return unit_float(bits) >= static_cast<float>(dropout_) ? T(1) / static_cast<T>(1 - dropout_)
                                                            : T(0);
  }
  /// Scaled and capped.
  T score(const T* query, const T* key) const {
    const T x = dot(query, key) * scale;
    return cap_ > 0 ? cap_ * std::tanh(x / cap_) : x;
  }
  /// How much a score grows with what is capped.
  T growth(T score) const { return cap_ > 0 ? 1 - score / cap_ * (score / cap_) : T(1); }
  T dot(const T* a, const T* b) const {
    T sum = 0;
    for (std::int64_t e = 0; e < E; ++e) sum += a[e] * b[e];
    return sum;
  }

  const RefOperand &q, &k;
  const std::int64_t B, S, G, R, E, K;
  const T scale;

 private:
  /// Of a query is a key, by position.
  std::int64_t ahead(std::int64_t s, std::int64_t t) const {
    return k.offset[1] + t - q.offset[1] - s;
  }

  const Sight sight_;
  const T cap_;
  const double dropout_;
  const std::uint64_t key_;
  const T* slopes_ = nullptr;
  const bool* mask_ = nullptr;
  bool mask_of_queries_ = false;  // it has a row for each of them
  std::uint64_t step_ = 0;
};

}  // namespace

template <typename T>
void attention_reference(RefCall& c) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const Heads<T> h(c, 0, 3);
  const T *q = c.in<T>(0), *k = c.in<T>(1), *v = c.in<T>(2);
  T *y = c.out<T>(0), *logsumexp = c.out<T>(1);
  std::vector<T> scores(static_cast<std::size_t>(h.K));
  h.each_row([&](std::int64_t b, std::int64_t g, std::int64_t r, std::int64_t s) {
    const std::int64_t at = h.query(b, g, r, s);
    T top = -kInfinity, total = 0;
    for (std::int64_t t = 0; t < h.K; ++t) {
      T& score = scores[static_cast<std::size_t>(t)];
      score = !h.seen(b, s, t) ? -kInfinity
                               : h.score(q + at, k + h.key(b, g, t)) + h.sloped(g, r, s, t);
      top = std::max(top, score);
    }
    std::fill(y + at, y + at + h.E, T(0));
    logsumexp[h.row(b, g, r, s)] = -kInfinity;
    if (top == -kInfinity) return;  // sees no key
    for (const T score : scores) total += std::exp(score - top);
    logsumexp[h.row(b, g, r, s)] = top + std::log(total);
    for (std::int64_t t = 0; t < h.K; ++t) {
      if (!h.seen(b, s, t)) continue;
      const T p =
          std::exp(scores[static_cast<std::size_t>(t)] - top) / total * h.kept(b, g, r, s, t);
      for (std::int64_t e = 0; e < h.E; ++e) y[at + e] += p * v[h.key(b, g, t) + e];
    }
  });
}

template <typename T>
void attention_grad_reference(RefCall& c) {
  const bool of_logsumexp = c.call.flag_or("of_logsumexp", false);
  const Heads<T> h(c, 1, 6 + of_logsumexp);
  const T *dy = c.in<T>(0), *q = c.in<T>(1), *k = c.in<T>(2), *v = c.in<T>(3), *y = c.in<T>(4);
  const T *logsumexp = c.in<T>(5), *dlogsumexp = of_logsumexp ? c.in<T>(6) : nullptr;
  T *dq = c.out<T>(0), *dk = c.out<T>(1), *dv = c.out<T>(2);
  std::fill(dk, dk + c.out_shape(1).numel(), T(0));
  std::fill(dv, dv + c.out_shape(2).numel(), T(0));
  h.each_row([&](std::int64_t b, std::int64_t g, std::int64_t r, std::int64_t s) {
    const std::int64_t at = h.query(b, g, r, s);
    std::fill(dq + at, dq + at + h.E, T(0));
    T row_sum = h.dot(dy + at, y + at);
    if (of_logsumexp) row_sum -= dlogsumexp[h.row(b, g, r, s)];
    for (std::int64_t t = 0; t < h.K; ++t) {
      if (!h.seen(b, s, t)) continue;
      const std::int64_t to = h.key(b, g, t);
      const T score = h.score(q + at, k + to);
      const T p = std::exp(score + h.sloped(g, r, s, t) - logsumexp[h.row(b, g, r, s)]);
      const T kept = h.kept(b, g, r, s, t);
      const T ds = p * (h.dot(dy + at, v + to) * kept - row_sum) * h.growth(score) * h.scale;
      for (std::int64_t e = 0; e < h.E; ++e) {
        dq[at + e] += ds * k[to + e];
        dk[to + e] += ds * q[at + e];
        dv[to + e] += p * kept * dy[at + e];
      }
    }
  });
}

template void attention_reference<float>(RefCall&);
template void attention_reference<double>(RefCall&);
template void attention_grad_reference<float>(RefCall&);
template void attention_grad_reference<double>(RefCall&);

}  // namespace tessera
