#include "tessera/config/memory_cap.h"

#include <algorithm>
#include <charconv>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

std::optional<std::int64_t> parse_memory_cap(std::string_view cap) {
  if (cap == "none") return std::nullopt;
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr Unit kUnits[] = {{"", 1},         {"B", 1},        {"kB", 1e3},    {"KB", 1e3},
                             {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},   {"KiB", 0x1p10},
                             {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  double number = 0;
  const char* const end = cap.data() + cap.size();
  const auto [behind, failure] = std::from_chars(cap.data(), end, number);
  const std::string_view name(behind, static_cast<std::size_t>(end - behind));
  const auto unit = std::ranges::find(kUnits, name, &Unit::name);
  const bool legal = failure == std::errc() && unit != std::end(kUnits);
  const double bytes = legal ? number * unit->bytes : 0;
  const bool large = failure == std::errc::result_out_of_range || bytes >= 0x1p62;
  require(!large, "memory-cap is '", cap, "', which is above 2^62 bytes; give less, or none");
  require(legal && bytes >= 1, "memory-cap is '", cap,
          "'; give bytes, as 10GiB (10 x 2^30), 8GB (8e9), 512MiB or 10000000, or none");
  return static_cast<std::int64_t>(bytes);
}

}  // namespace tessera
