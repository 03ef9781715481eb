#pragma once
/// Which part of token files trains, which validates and which tests.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

enum class DataPart { Train, Valid, Test };
/// "train", "valid", "test"
std::string_view to_text(DataPart part);

/// Megatron-LM's default.
inline constexpr std::string_view kUsualSplit = "969, 30, 1";

/// Where a part begins and ends, as shares of all; none: the part is empty.
struct SplitShares {
  std::array<std::optional<std::pair<double, double>>, 3> parts;

  /// Of `count` sequences or documents, those of the part: [first, second). Empty: first == second.
  std::pair<std::int64_t, std::int64_t> range(DataPart part, std::int64_t count) const;
  /// The whole of it, as one part.
  static SplitShares all(DataPart part);
};

/// "969,30,1" or "98/2": every number in the text is a weight, in the order train, valid, test;
/// those that are missing are 0. Errors: Fault::Usage: no number, a bad one, more than three, or
/// all of them 0.
SplitShares parse_split(std::string_view split);

}  // namespace tessera
