#include "tessera/pretrained/hub/hub_rows.h"

#include <algorithm>
#include <cmath>

namespace tessera {

namespace {

/// Adds one part of each group of `group` rows: `width` of them, `offset` behind its beginning.
void add_part(const ModelConfig& c, std::int64_t group, std::int64_t offset, std::int64_t width,
              std::int64_t theirs, std::vector<HubRowRun>& out) {
  for (std::int64_t g = 0; g < c.groups(); ++g)
    out.push_back({g * group + offset, theirs + g * width, width});
}

/// Of heads of `width` rows each: the last `turned` stand in pairs there, and first in ours.
std::vector<HubRowRun> last_unpaired(std::int64_t rows, std::int64_t width, std::int64_t turned) {
  std::vector<HubRowRun> out;
  for (std::int64_t head = 0; head < rows; head += width) {
    for (std::int64_t i = 0; i < turned; ++i)
      out.push_back({head + i, head + width - turned + 2 * (i % (turned / 2)) + 2 * i / turned, 1});
    out.push_back({head + turned, head, width - turned});
  }
  return out;
}

/// Of heads of `width` rows in `runs`: the first `turned` stand in pairs there.
std::vector<HubRowRun> unpaired(const std::vector<HubRowRun>& runs, std::int64_t width,
                                std::int64_t turned) {
  std::vector<HubRowRun> out;
  for (const HubRowRun& run : runs) {
    for (std::int64_t head = 0; head < run.count; head += width) {
      const std::int64_t ours = run.ours + head, theirs = run.theirs + head;
      for (std::int64_t i = 0; i < turned; ++i)
        out.push_back({ours + i % 2 * (turned / 2) + i / 2, theirs + i, 1});
      if (turned < width) out.push_back({ours + turned, theirs + turned, width - turned});
    }
  }
  return out;
}

}  // namespace

std::optional<HubTurns> hub_turns(HubRows which) {
  switch (which) {
    case HubRows::Experts: return HubTurns{1, 0};
    case HubRows::EvenOfExperts: return HubTurns{2, 0};
    case HubRows::OddOfExperts: return HubTurns{2, 1};
    default: return std::nullopt;
  }
}

std::vector<HubRowRun> hub_row_runs(HubRows which, const ModelConfig& c, std::int64_t rows,
                                    std::int64_t expert) {
  if (which == HubRows::Expert) return {{expert, 0, 1}};
  if (which == HubRows::All || which == HubRows::OneRow) return {{0, 0, rows}};
  if (which == HubRows::UpperHalf) return {{0, 0, rows / 2}};
  if (which == HubRows::LowerHalf) return {{0, rows / 2, rows / 2}};
  if (which == HubRows::LatentQueries)
    return last_unpaired(rows, c.head_dim(), c.latent.rotary_width);
  if (which == HubRows::LatentKeys) return last_unpaired(rows, rows, c.latent.rotary_width);
  const std::int64_t e = c.head_dim(), queries = c.heads / c.groups() * e;
  const std::int64_t group = queries + 2 * e;
  const bool fused = which == HubRows::Fused,
             pairs = which == HubRows::PairedQueries || which == HubRows::PairedKeys;
  std::vector<HubRowRun> out;
  if (fused || which == HubRows::Queries || which == HubRows::PairedQueries)
    add_part(c, group, 0, queries, 0, out);
  if (fused || which == HubRows::Keys || which == HubRows::PairedKeys)
    add_part(c, group, queries, e, fused ? c.heads * e : 0, out);
  if (fused || which == HubRows::Values)
    add_part(c, group, queries + e, e, fused ? (c.heads + c.groups()) * e : 0, out);
  if (which == HubRows::CrossKeys) add_part(c, 2 * e, 0, e, 0, out);
  if (which == HubRows::CrossValues) add_part(c, 2 * e, e, e, 0, out);
  if (pairs) out = unpaired(out, e, std::llround(c.rotary_share * static_cast<double>(e)));
  std::ranges::sort(out, {}, &HubRowRun::ours);
  return out;
}

std::int64_t hub_row_count(HubRows which, const ModelConfig& c, std::int64_t rows) {
  switch (which) {
    case HubRows::All:
    case HubRows::Experts:
    case HubRows::EvenOfExperts:
    case HubRows::OddOfExperts:
    case HubRows::LatentQueries:
    case HubRows::LatentKeys:
    case HubRows::OneRow: return rows;
    case HubRows::Expert: return 1;
    case HubRows::UpperHalf:
    case HubRows::LowerHalf: return 2 * rows;
    case HubRows::PairedQueries:
    case HubRows::Queries: return c.heads * c.head_dim();
    case HubRows::Keys:
    case HubRows::PairedKeys:
    case HubRows::CrossKeys:
    case HubRows::CrossValues:
    case HubRows::Values: return c.groups() * c.head_dim();
    case HubRows::Fused: return (c.heads + 2 * c.groups()) * c.head_dim();
  }
  return rows;
}

std::int64_t our_row_count(HubRows which, std::int64_t theirs) {
  return which == HubRows::UpperHalf || which == HubRows::LowerHalf ? theirs / 2 : theirs;
}

Shape hub_shape(HubRows which, bool transposed, const Shape& ours, const ModelConfig& config) {
  Shape out = ours;
  if (which == HubRows::Expert) {
    out.erase(0);
    return transposed ? Shape{out[1], out[0]} : out;
  }
  if (const std::optional<HubTurns> turns = hub_turns(which); turns && out.ndim() > 1) {
    const std::int64_t results = turns->of * out[1];
    return out.ndim() > 2 ? Shape{out[0], out[2], results} : Shape{out[0], results};
  }
  if (out.ndim() > 0) out[0] = hub_row_count(which, config, ours[0]);
  if (transposed && out.ndim() == 2) out = {out[1], out[0]};
  if (which == HubRows::OneRow) out = {1, out[0]};
  return out;
}

ModelConfig of_stack(ModelConfig config, std::string_view parameter) {
  if (parameter.starts_with("decoder.")) config.heads = config.heads_of_decoder();
  return config;
}

}  // namespace tessera
