#pragma once
/// First values of parameters.
///
/// A layer takes a WeightInit, which needs no shape; `of` makes the Init of a weight from it. What
/// is drawn depends on (seed, path, place in the whole tensor) alone, on no mesh.

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

/// How a weight of any shape begins. Made by the functions below.
struct WeightInit {
  /// What `value` is: that of the Init, or a gain, from which and a weight's fans comes the
  /// standard deviation: gain / sqrt(fan), or gain * sqrt(2 / (in + out)).
  enum class Width { Given, FanIn, FanOut, BothFans };
  Init::Kind kind = Init::Kind::Normal;
  double value = 0.02;
  Width width = Width::Given;

  /// Errors: a width by fans, and less than two dims.
  Init of(const Shape& weight) const;
  friend bool operator==(const WeightInit&, const WeightInit&) = default;
};

constexpr WeightInit constant_init(double value) { return {Init::Kind::Constant, value}; }
constexpr WeightInit zeros_init() { return constant_init(0); }
constexpr WeightInit ones_init() { return constant_init(1); }
/// Normal of mean 0.
constexpr WeightInit normal_init(double deviation) { return {Init::Kind::Normal, deviation}; }
/// A normal that is cut at two standard deviations of the normal that is cut, as MindSpore's
/// TruncatedNormal(sigma) and torch's trunc_normal_(std=s, a=-2s, b=2s) do; the standard deviation
/// of what is left is 0.8796 times that, which nothing makes up for.
constexpr WeightInit truncated_normal_init(double deviation) {
  return {Init::Kind::TruncatedNormal, deviation};
}
/// Uniform in [-bound, bound).
constexpr WeightInit uniform_init(double bound) { return {Init::Kind::Uniform, bound}; }

/// Normal of standard deviation gain / sqrt(fan), or uniform with the same one: of bound sqrt(3)
/// times that. For layers behind which a relu stands; with a gain of 1 LeCun's.
/// Source: He et al. 2015, arXiv 1502.01852.
WeightInit he_normal_init(Fan fan = Fan::In, double gain = kReluGain);
WeightInit he_uniform_init(Fan fan = Fan::In, double gain = kReluGain);

/// The same with the mean of both fans: standard deviation gain * sqrt(2 / (in + out)).
/// Source: Glorot and Bengio 2010, Understanding the difficulty of training deep feedforward
/// neural networks.
WeightInit xavier_normal_init(double gain = 1);
WeightInit xavier_uniform_init(double gain = 1);

/// Of a weight whose result is one of `parts` that are added to the residual stream: `init`, times
/// 1 / sqrt(parts), so that the stream's variance does not grow with depth. An encoder layer adds 2
/// parts. Source: Radford et al. 2019 (GPT-2), section 2.3.
WeightInit residual_init(WeightInit init, std::int64_t parts);

/// What a state of `type` begins with, drawn under the name of its path.
Value first_value(Builder& builder, const Init& init, const TensorType& type,
                  std::string_view path);

}  // namespace tessera
