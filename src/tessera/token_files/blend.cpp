#include "tessera/token_files/blend.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

std::optional<double> weight_of(std::string_view word) {
  word = trim(word);
  double out = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return out;
}

BlendIndices stored_blend(const std::vector<std::int16_t>& datasets,
                          const std::vector<std::int64_t>& samples) {
  return {{std::span<const std::int16_t>(datasets), NpyType::I16},
          {std::span<const std::int64_t>(samples), NpyType::I64}};
}

double rounded_up(double x) { return std::ceil(x); }

}  // namespace

BlendList parse_blend(std::span<const std::string> words) {
  BlendList out;
  const auto all = [&] {
    for (const std::string& word : words) out.prefixes.emplace_back(trim(word));
    return out;
  };
  if (words.size() % 2 == 1) {
    for (const std::string& word : words) {
      require(words.size() == 1 || !weight_of(word), "data has a weight, ", word, ", among ",
              words.size(), " words; give a weight before each prefix, or none, as in 0.3 a 0.7 b");
    }
    return all();
  }
  std::size_t numbers = 0;
  for (std::size_t i = 0; i < words.size(); i += 2) numbers += weight_of(words[i]) ? 1 : 0;
  if (numbers == 0) return all();
  require(numbers == words.size() / 2, "data has ", numbers, " weights for ", words.size() / 2,
          " prefixes; give a weight before each, or none, as in 0.3 a 0.7 b");
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const double weight = *weight_of(words[i]);
    require(std::isfinite(weight) && weight > 0, "data has weight ", words[i], " for '",
            words[i + 1], "'; give a number above 0, or leave the prefix out");
    out.weights.push_back(weight);
    out.prefixes.emplace_back(trim(words[i + 1]));
  }
  return out;
}

std::vector<double> normalised(std::span<const double> weights) {
  // NumPy adds up to 8 numbers one by one, and more in 8 interleaved sums, up to 128 at a time.
  const auto plain = [](std::span<const double> x) {
    double sum = 0;
    for (const double w : x) sum += w;
    return sum;
  };
  const auto pairwise = [&](const auto& self, std::span<const double> x) -> double {
    if (x.size() < 8) return plain(x);
    if (x.size() > 128) {
      std::size_t half = x.size() / 2;
      half -= half % 8;
      return self(self, x.first(half)) + self(self, x.subspan(half));
    }
    double r[8];
    std::copy_n(x.begin(), 8, r);
    std::size_t i = 8;
    for (; i + 8 <= x.size(); i += 8) {
      for (std::size_t j = 0; j < 8; ++j) r[j] += x[i + j];
    }
    double sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    for (; i < x.size(); ++i) sum += x[i];
    return sum;
  };
  const double sum = pairwise(pairwise, weights);
  std::vector<double> out;
  for (const double w : weights) out.push_back(w / sum);
  return out;
}

std::vector<std::int64_t> samples_of_parts(std::span<const double> normalised, std::int64_t samples,
                                           double surplus) {
  std::vector<std::int64_t> out;
  for (const double weight : normalised) {
    const double share = rounded_up(static_cast<double>(samples) * weight);
    out.push_back(
        static_cast<std::int64_t>(surplus == 0 ? share : rounded_up(share * (1 + surplus))));
  }
  return out;
}

BlendIndices blend_by_weight(std::span<const double> weights, std::int64_t size) {
  check(!weights.empty() && weights.size() < 32767, "a blend of ", weights.size(), " datasets");
  std::vector<std::int16_t> datasets(static_cast<std::size_t>(size));
  std::vector<std::int64_t> samples(static_cast<std::size_t>(size)), taken(weights.size());
  for (std::size_t k = 0; k < datasets.size(); ++k) {
    const double at = std::max(static_cast<double>(k), 1.0);
    std::size_t next = 0;
    double most = weights[0] * at - static_cast<double>(taken[0]);
    for (std::size_t d = 1; d < weights.size(); ++d) {
      const double behind = weights[d] * at - static_cast<double>(taken[d]);
      if (behind > most) most = behind, next = d;
    }
    datasets[k] = static_cast<std::int16_t>(next);
    samples[k] = taken[next]++;
  }
  return stored_blend(datasets, samples);
}

BlendIndices blend_all(std::span<const std::int64_t> sizes) {
  check(!sizes.empty() && sizes.size() < 32767, "a blend of ", sizes.size(), " datasets");
  std::int64_t all = 0;
  for (const std::int64_t size : sizes) all = size_sum(all, size, "samples of all datasets");
  std::vector<double> weights;
  for (const std::int64_t size : sizes)
    weights.push_back(static_cast<double>(size) / static_cast<double>(all));
  std::vector<std::int16_t> datasets;
  std::vector<std::int64_t> samples, taken(sizes.size());
  for (std::int64_t k = 0; k < all; ++k) {
    const double at = std::max(static_cast<double>(k), 1.0);
    std::size_t next = sizes.size();
    double most = 0;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      if (taken[d] == sizes[d]) continue;
      const double behind = weights[d] * at - static_cast<double>(taken[d]);
      if (next == sizes.size() || behind > most) most = behind, next = d;
    }
    datasets.push_back(static_cast<std::int16_t>(next));
    samples.push_back(taken[next]++);
  }
  return stored_blend(datasets, samples);
}

}  // namespace tessera
