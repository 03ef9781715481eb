#include "tessera/token_files/data_split.h"

#include <cfenv>
#include <charconv>
#include <cmath>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"

namespace tessera {

namespace {

bool of_a_number(char c) { return (c >= '0' && c <= '9') || c == '.'; }
bool between_numbers(char c) { return c == ',' || c == '/' || c == ':' || c == ' '; }

std::vector<double> weights_in(std::string_view split) {
  std::vector<double> out;
  for (std::size_t i = 0; i < split.size();) {
    if (!of_a_number(split[i])) {
      require(between_numbers(split[i]), "split '", printable(split), "' has '",
              printable(split.substr(i, 1)),
              "' in it; give weights of training, validation and test as in ", kUsualSplit);
      ++i;
      continue;
    }
    const std::size_t begin = i;
    while (i < split.size() && of_a_number(split[i])) ++i;
    double weight = 0;
    const auto [end, error] = std::from_chars(split.data() + begin, split.data() + i, weight);
    require(error == std::errc() && end == split.data() + i && std::isfinite(weight), "split '",
            printable(split), "': '", split.substr(begin, i - begin),
            "' is not a number; give weights of training, validation and test as in ", kUsualSplit);
    out.push_back(weight);
  }
  return out;
}

/// Half to even, as Python rounds.
std::int64_t rounded(double value) { return static_cast<std::int64_t>(std::nearbyint(value)); }

}  // namespace

std::string_view to_text(DataPart part) {
  constexpr std::string_view kNames[] = {"train", "valid", "test"};
  return kNames[static_cast<std::size_t>(part)];
}

std::pair<std::int64_t, std::int64_t> SplitShares::range(DataPart part, std::int64_t count) const {
  const auto& share = parts[static_cast<std::size_t>(part)];
  if (!share) return {0, 0};
  const auto all = static_cast<double>(count);
  return {rounded(share->first * all), rounded(share->second * all)};
}

SplitShares SplitShares::all(DataPart part) {
  SplitShares out;
  out.parts[static_cast<std::size_t>(part)] = {0.0, 1.0};
  return out;
}

SplitShares parse_split(std::string_view split) {
  std::vector<double> weights = weights_in(split);
  require(!weights.empty() && weights.size() <= 3, "split '", printable(split), "' has ",
          weights.size(), " numbers where 1 to 3 are expected, as in ", kUsualSplit);
  weights.resize(3);
  const double sum = weights[0] + weights[1] + weights[2];
  require(sum > 0 && std::isfinite(sum), "split '", printable(split), "' has the sum ", sum,
          "; give weights of training, validation and test as in ", kUsualSplit);
  SplitShares out;
  double at = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const double end = at + weights[i] / sum;
    if (end > at) out.parts[i] = {at, end};
    at = end;
  }
  return out;
}

}  // namespace tessera
