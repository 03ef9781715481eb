#pragma once
/// First values of parameters, by what flows into a weight and out of it.
///
/// Each returns an Init; what is drawn depends on (seed, path, place in the whole tensor) alone, on
/// no mesh. A truncated normal is cut at two standard deviations of the normal that is cut, as
/// MindSpore's TruncatedNormal(sigma) and torch's trunc_normal_(std=s, a=-2s, b=2s) do; the
/// standard deviation of what is left is 0.8796 times that, which nothing makes up for.

#include "tessera/ir/builder.h"

namespace tessera {

/// How many inputs feed an output of a weight, and how many outputs an input feeds: [out, in] or,
/// of a convolution, [out, in, window...], whose elements count for both. Errors: less than two
/// dims.
struct Fans {
  double in = 0, out = 0;
};
Fans fans_of(const Shape& weight);

enum class Fan { In, Out };  // keeps the variance of activations, or that of their gradients
inline constexpr double kReluGain = 1.4142135623730951;  // sqrt(2): relu halves the mean square

/// Normal of standard deviation gain / sqrt(fan), or uniform with the same one: of bound sqrt(3)
/// times that. For layers behind which a relu stands; with a gain of 1 LeCun's.
/// Source: He et al. 2015, arXiv 1502.01852.
Init he_normal(const Shape& weight, Fan fan = Fan::In, double gain = kReluGain);
Init he_uniform(const Shape& weight, Fan fan = Fan::In, double gain = kReluGain);

/// The same with the mean of both fans: standard deviation gain * sqrt(2 / (in + out)).
/// Source: Glorot and Bengio 2010, Understanding the difficulty of training deep feedforward
/// neural networks.
Init xavier_normal(const Shape& weight, double gain = 1);
Init xavier_uniform(const Shape& weight, double gain = 1);

/// What a state of `type` begins with, drawn under the name of its path.
Value first_value(Builder& builder, const Init& init, const TensorType& type,
                  std::string_view path);

}  // namespace tessera
