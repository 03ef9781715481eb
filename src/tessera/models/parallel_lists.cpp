/// What flags of parallelism list: layers, axes, how many layers chunks have.

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/models/parallel.h"

namespace tessera {

namespace {

/// All of `word`; nothing where it is no number.
std::optional<std::int64_t> whole_number(std::string_view word) {
  std::int64_t out = 0;
  const char* const end = word.data() + word.size();
  const auto [behind, failure] = std::from_chars(word.data(), end, out);
  if (failure != std::errc() || behind != end || word.empty()) return std::nullopt;
  return out;
}

}  // namespace

std::vector<std::int64_t> parse_layers(std::string_view list, std::int64_t layers) {
  std::set<std::int64_t> out;
  for (const std::string& part : split(list == "all" ? text("0-", layers - 1) : list, ',')) {
    const std::size_t dash = part.find('-');
    const auto first = whole_number(std::string_view(part).substr(0, dash));
    const auto last =
        dash == part.npos ? first : whole_number(std::string_view(part).substr(dash + 1));
    require(first && last && *first <= *last, "recompute-layers is '", list, "', in which '", part,
            "' is neither a layer nor a range; give all, or numbers from 0, as 0-5,8");
    const bool is_there = *first >= 0 && *last < layers;
    const std::string remedy =
        layers == 1 ? "the only layer is 0; give that"
                    : text("the layers are 0 to ", layers - 1, "; give some of these");
    require(is_there, "recompute-layers is '", list, "', but ", remedy);
    for (std::int64_t layer = *first; layer <= *last; ++layer) out.insert(layer);
  }
  return {out.begin(), out.end()};
}

std::vector<std::string> parse_rank_order(std::string_view order) {
  std::vector<std::string> out = split(order, ',');
  const std::vector<std::string> wanted = {std::string(kDataAxis), std::string(kContextAxis),
                                           std::string(kTensorAxis)};
  require(std::ranges::is_permutation(out, wanted), "rank-order is '", order, "'; give each of ",
          join(wanted), " once, outermost first, as ", ParallelConfig().rank_order);
  return out;
}

std::vector<std::int64_t> parse_layout(std::string_view layout) {
  std::vector<std::int64_t> out;
  for (const std::string& word : split(layout, ',')) {
    const auto count = whole_number(word);
    require(count && *count >= 0, "pipeline-layout is '", layout, "', in which '", word,
            "' is not a number of layers; give one for each chunk, as 3,4,4,3");
    out.push_back(*count);
  }
  return out;
}

}  // namespace tessera
