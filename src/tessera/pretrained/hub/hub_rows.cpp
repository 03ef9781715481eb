#include "tessera/pretrained/hub/hub_rows.h"

#include <algorithm>

namespace tessera {

namespace {

/// Adds one part of each group: `width` rows, `offset` behind the beginning of the group.
void add_part(const ModelConfig& c, std::int64_t offset, std::int64_t width, std::int64_t theirs,
              std::vector<HubRowRun>& out) {
  const std::int64_t group = (c.heads / c.groups() + 2) * c.head_dim();
  for (std::int64_t g = 0; g < c.groups(); ++g)
    out.push_back({g * group + offset, theirs + g * width, width});
}

}  // namespace

std::vector<HubRowRun> hub_row_runs(HubRows which, const ModelConfig& c, std::int64_t rows) {
  if (which == HubRows::All) return {{0, 0, rows}};
  const std::int64_t e = c.head_dim(), queries = c.heads / c.groups() * e;
  const bool fused = which == HubRows::Fused;
  std::vector<HubRowRun> out;
  if (fused || which == HubRows::Queries) add_part(c, 0, queries, 0, out);
  if (fused || which == HubRows::Keys) add_part(c, queries, e, fused ? c.heads * e : 0, out);
  if (fused || which == HubRows::Values)
    add_part(c, queries + e, e, fused ? (c.heads + c.groups()) * e : 0, out);
  std::ranges::sort(out, {}, &HubRowRun::ours);
  return out;
}

std::int64_t hub_row_count(HubRows which, const ModelConfig& c, std::int64_t rows) {
  switch (which) {
    case HubRows::All: return rows;
    case HubRows::Queries: return c.heads * c.head_dim();
    case HubRows::Keys:
    case HubRows::Values: return c.groups() * c.head_dim();
    case HubRows::Fused: return (c.heads + 2 * c.groups()) * c.head_dim();
  }
  return rows;
}

}  // namespace tessera
