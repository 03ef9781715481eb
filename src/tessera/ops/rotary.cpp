#include "tessera/ops/rotary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "tessera/base/error.h"

namespace tessera {

namespace {

/// What a kind changes `rates` from, and by.
struct Stretch {
  const RotaryScaling& scaling;
  double base;
  std::int64_t channels, length;  // n and the length of samples
  RotaryRates& rates;             // those of the base

  double original() const { return static_cast<double>(scaling.original_length); }
  double log_factor() const { return std::log(std::max(1.0, scaling.factor)); }
};

std::vector<double> rates_of_base(double base, std::int64_t channels) {
  std::vector<double> out;
  for (std::int64_t i = 0; 2 * i < channels; ++i)
    out.push_back(std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(channels)));
  return out;
}

void plain_scaling(const Stretch&) {}

void linear_scaling(const Stretch& s) {
  for (double& rate : s.rates.rates) rate /= s.scaling.factor;
}

void dynamic_scaling(const Stretch& s) {
  require(s.channels > 2, "rotary positions: ", s.channels,
          " channels turn; dynamic scaling needs more than 2");
  const double n = static_cast<double>(s.channels), factor = s.scaling.factor;
  const double longer = std::max(1.0, static_cast<double>(s.length) / s.original());
  const double base = s.base * std::pow(factor * longer - (factor - 1), n / (n - 2));
  s.rates.rates = rates_of_base(base, s.channels);
}

void llama3_scaling(const Stretch& s) {
  const double low = s.scaling.low_freq_factor, high = s.scaling.high_freq_factor;
  require(low > 0 && high > low, "rotary positions: low_freq_factor is ", low,
          ", high_freq_factor is ", high, "; they need 0 < low_freq_factor < high_freq_factor");
  for (double& rate : s.rates.rates) {
    const double turns = s.original() * rate / (2 * std::numbers::pi);
    const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    rate = (1 - kept) * rate / s.scaling.factor + kept * rate;
  }
}

void yarn_scaling(const Stretch& s) {
  const RotaryScaling& scaling = s.scaling;
  require(scaling.beta_slow > 0 && scaling.beta_fast > 0 && s.base != 1,
          "rotary positions: beta_fast is ", scaling.beta_fast, ", beta_slow is ",
          scaling.beta_slow, ", the base is ", s.base,
          "; yarn needs numbers above 0, and another base than 1");
  const double n = static_cast<double>(s.channels);
  const auto pair_of = [&](double turns) {
    return n * std::log(s.original() / (turns * 2 * std::numbers::pi)) / (2 * std::log(s.base));
  };
  double first = pair_of(scaling.beta_fast), last = pair_of(scaling.beta_slow);
  if (scaling.truncate) first = std::floor(first), last = std::ceil(last);
  first = std::max(first, 0.0), last = std::min(last, n - 1);
  if (first == last) last += 0.001;
  for (std::size_t i = 0; i < s.rates.rates.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - first) / (last - first), 0.0, 1.0);
    double& rate = s.rates.rates[i];
    rate = (1 - ramp) * rate + ramp * rate / scaling.factor;
  }
  const auto size = [&](double scale) { return 0.1 * scale * s.log_factor() + 1; };
  const bool both = scaling.mscale != 0 && scaling.mscale_all_dim != 0;
  s.rates.factor = scaling.attention_factor.value_or(
      both ? size(scaling.mscale) / size(scaling.mscale_all_dim) : size(1));
}

void longrope_scaling(const Stretch& s) {
  std::vector<double>& rates = s.rates.rates;
  for (const auto& [name, list] : {std::pair("short_factor", &s.scaling.short_factor),
                                   std::pair("long_factor", &s.scaling.long_factor)}) {
    require(list->size() == rates.size(), "rotary positions: ", name, " has ", list->size(),
            " numbers; it needs ", rates.size(), ", one for each pair of the ", s.channels,
            " channels that turn");
    for (const double factor : *list)
      require(factor > 0, "rotary positions: ", name, " has ", factor, "; factors are above 0");
  }
  const bool is_long = s.length > s.scaling.original_length;
  const std::vector<double>& by = is_long ? s.scaling.long_factor : s.scaling.short_factor;
  for (std::size_t i = 0; i < by.size(); ++i) rates[i] /= by[i];
  s.rates.factor =
      s.scaling.attention_factor.value_or(std::sqrt(1 + s.log_factor() / std::log(s.original())));
}

struct RotaryRow {
  std::string_view name;
  void (*stretch)(const Stretch&);
  std::int64_t least_length;  // of pre-training
};

/// In the order of RotaryKind.
constexpr std::array<RotaryRow, 6> kRotaryRows = {{
    {"default", plain_scaling, 0},
    {"linear", linear_scaling, 0},
    {"dynamic", dynamic_scaling, 1},
    {"llama3", llama3_scaling, 1},
    {"yarn", yarn_scaling, 1},
    {"longrope", longrope_scaling, 2},  // divides by its logarithm
}};

const RotaryRow& row_of(RotaryKind kind) { return kRotaryRows[static_cast<std::size_t>(kind)]; }

}  // namespace

RotaryRates rotary_rates(const Rotary& rotary, std::int64_t width, std::int64_t length) {
  const RotaryScaling& scaling = rotary.scaling;
  const RotaryRow& kind = row_of(scaling.kind);
  require(rotary.base > 0 && rotary.share > 0 && rotary.share <= 1, "rotary positions: base ",
          rotary.base, ", share of channels ", rotary.share,
          "; the base must be above 0, the share above 0 and at most 1");
  require(scaling.factor > 0 && scaling.original_length >= kind.least_length,
          "rotary positions: ", kind.name, " scaling by ", scaling.factor, ", original length ",
          scaling.original_length, "; it needs a factor above 0 and a length of ",
          kind.least_length, " or more");
  const auto channels = static_cast<std::int64_t>(static_cast<double>(width) * rotary.share);
  RotaryRates out{rates_of_base(rotary.base, channels)};
  kind.stretch({scaling, rotary.base, channels, length, out});
  return out;
}

std::string_view to_text(RotaryKind kind) { return row_of(kind).name; }

std::optional<RotaryKind> find_rotary_kind(std::string_view name) {
  for (std::size_t i = 0; i < kRotaryRows.size(); ++i) {
    if (kRotaryRows[i].name == name) return static_cast<RotaryKind>(i);
  }
  return std::nullopt;
}

}  // namespace tessera
