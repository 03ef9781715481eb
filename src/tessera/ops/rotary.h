#pragma once
/// Rotary positions of models: which channels of a head turn, how fast, and how models are stretched
/// over samples longer than those of pre-training.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tessera {

enum class RotaryKind : std::uint8_t { Plain, Linear, Dynamic, Llama3, Yarn, LongRope };

/// As the configurations of Hugging Face name them: default, linear, dynamic, llama3, yarn, longrope.
std::string_view to_text(RotaryKind kind);
/// None: there is no such kind.
std::optional<RotaryKind> find_rotary_kind(std::string_view name);

/// How rates differ from those of `base`. A kind reads the numbers whose comment names it; defaults
/// are those of transformers.
struct RotaryScaling {
  RotaryKind kind = RotaryKind::Plain;
  double factor = 1;                 // all but Plain: by how much samples are longer
  std::int64_t original_length = 0;  // Dynamic, Llama3, Yarn, LongRope: tokens in pre-training
  double low_freq_factor = 1, high_freq_factor = 4;         // Llama3
  double beta_fast = 32, beta_slow = 1;                     // Yarn
  bool truncate = true;                                     // Yarn
  double mscale = 0, mscale_all_dim = 0;                    // Yarn; 0: not given
  std::optional<double> attention_factor = std::nullopt;    // Yarn, LongRope; none: as below
  std::vector<double> short_factor = {}, long_factor = {};  // LongRope: one for each pair

  friend bool operator==(const RotaryScaling&, const RotaryScaling&) = default;
};

/// Rotary positions of a model.
struct Rotary {
  double base = 10'000;
  double share = 1;  // of a head's channels: the first int(share * width) turn
  RotaryScaling scaling = {};

  friend bool operator==(const Rotary&, const Rotary&) = default;
};

/// What the op `rope` is told.
struct RotaryRates {
  std::vector<double> rates;  // radians per position, one for each pair of channels
  double factor = 1;          // of cosine and sine

  friend bool operator==(const RotaryRates&, const RotaryRates&) = default;
};

/// The rates of heads of `width` channels in samples of `length` tokens: that of pair i of
/// ceil(n/2), where n = int(share * width), is w_i = base^(-2i/n), but for
///
/// Linear:   w_i / s, where s is `factor`.
/// Dynamic:  base * (s max(length, L) / L - s + 1)^(n/(n-2)) is the base, where L is
///           `original_length`.
/// Llama3:   (1 - t) w_i / s + t w_i, t = (L w_i / 2 pi - low) / (high - low) cut to [0, 1].
/// Yarn:     (1 - r) w_i + r w_i / s, r = (i - a) / (b - a) cut to [0, 1]; a = max(0, c(beta_fast)),
///           b = min(n - 1, c(beta_slow)), c(turns) = n ln(L / (2 pi turns)) / (2 ln base), the
///           first rounded down and the second up where `truncate`.
/// LongRope: w_i / short_factor_i; w_i / long_factor_i where length > L.
///
/// Cosine and sine are multiplied by `attention_factor`. Without it by m(1) with Yarn, where
/// m(x) = 0.1 x ln s + 1, or, where both are given, by m(mscale) / m(mscale_all_dim); by
/// sqrt(1 + ln s / ln L) with LongRope. Where s < 1, ln s counts as 0.
///
/// Numeric: in f64.
/// Errors:  numbers out of range; lists of LongRope that are not one number for each pair.
/// Source:  transformers' modeling_rope_utils; Su et al. 2021, RoFormer, arXiv 2104.09864; Peng et
///          al. 2023, YaRN, arXiv 2309.00071; Ding et al. 2024, LongRoPE, arXiv 2402.13753.
RotaryRates rotary_rates(const Rotary& rotary, std::int64_t width, std::int64_t length);

}  // namespace tessera
