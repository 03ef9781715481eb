#pragma once
/// Random ops: pure functions of (seed, key path, logical index, step); see base/philox.h.
///
/// The key path is the block path and a required name that is unique in the block. Element i of the
/// *logical* tensor takes word i % 4 of philox(key, i / 4, step): masks do not depend on how the
/// tensor is cut. A gradient carries the key of its forward op: masks are drawn again, never
/// stored.

#include "tessera/ir/builder.h"

namespace tessera {

/// x / (1 - p) where the element's random number is >= p, else 0. `step` is an i64 scalar. p = 0
/// returns x itself.
Value dropout(Value x, Value step, double p, std::string_view name, Where where = Where::here());
/// Uniform in [0, 1): multiples of 2^-24.
Value random_uniform(Builder& builder, Shape shape, Value step, std::string_view name,
                     Where where = Where::here());
/// Standard normal in f32, by Box-Muller on the element's pair of words in its block (words 0,1 and
/// 2,3), computed in f64.
Value random_normal(Builder& builder, Shape shape, Value step, std::string_view name,
                    Where where = Where::here());

/// Standard normal in f32, drawn again where it lies beyond two standard deviations: the numbers of
/// random_normal, but for the 4.6% beyond, whose standard deviation is 0.8796.
Value random_truncated_normal(Builder& builder, Shape shape, Value step, std::string_view name,
                              Where where = Where::here());

/// Two standard normal numbers from two random words, by Box and Muller.
struct NormalPair {
  float even = 0, odd = 0;  // of the elements with an even and an odd index
};
NormalPair normal_pair(std::uint32_t first, std::uint32_t second);

/// The number that random_normal gives one logical element; initial weights are drawn with it too.
float normal_number(std::uint64_t key, std::uint64_t index, std::uint64_t step);
/// The first of the numbers that keys key, key + 1, ... give the element that is within [-2, 2].
float truncated_normal_number(std::uint64_t key, std::uint64_t index, std::uint64_t step);

extern const OpDef kDropout, kRandomUniform, kRandomNormal, kRandomTruncatedNormal;

/// True of ops that draw random numbers: their results depend on the seed and on where an element
/// lies in the whole tensor, so they cannot be computed ahead.
bool is_random(const OpDef& op);

}  // namespace tessera
