#include "tessera/planner/explain.h"

#include <algorithm>
#include <array>
#include <set>

#include "tessera/base/format.h"
#include "tessera/base/index.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"
#include "tessera/train/memory_choice.h"

namespace tessera {

namespace {

constexpr std::size_t kMostAlternatives = 6;

double part(const Prediction& predicted, TimePart which) {
  return predicted.exposed[static_cast<std::size_t>(which)];
}

/// Where the busiest stage of a composition spends a step.
std::vector<Share> shares_of(const Composition& composed, std::int64_t micro_batches) {
  const auto m = static_cast<double>(micro_batches);
  const auto kind = [&](const char* what, StageUse::Part part) {
    return Share{what, m * composed.busiest[part]};
  };
  return {kind("products", StageUse::kProducts),
          kind("other kernels", StageUse::kKernels),
          kind("transfers inside layers", StageUse::kInner),
          kind("transfers of gradients and states", StageUse::kData),
          kind("copies to the host", StageUse::kCopies),
          {"the update", composed.busiest[StageUse::kUpdate]},
          {"waiting", composed.bubble * composed.loop_seconds}};
}

/// In which respects a plan differs from the best, in a word each.
std::string respects(const PlanChoice& a, const PlanChoice& b) {
  std::string out;
  const auto add = [&](bool differs, const char* what) {
    if (differs) out += text(out.empty() ? "" : ", ", what);
  };
  add(a.devices() != b.devices(), "devices");
  add(a.data != b.data, "data");
  add(a.context != b.context, "context");
  add(a.tensor != b.tensor, "tensor");
  add(a.pipeline != b.pipeline, "stages");
  add(a.sequence != b.sequence, "sequence");
  add(a.schedule != b.schedule || a.chunks != b.chunks, "schedule");
  add(a.micro_batch_size != b.micro_batch_size, "micro-batch");
  add(a.zero != b.zero || a.shard_size != b.shard_size, "ZeRO");
  add(a.recompute != b.recompute || a.recomputed != b.recomputed, "recomputing");
  add(a.offload != b.offload, "offload");
  add(a.floats != b.floats, "floats");
  add(out.empty() && a.order != b.order, "order");
  return out;
}

std::string why_slower(const Considered& other, const Considered& best, std::int64_t micro_batches,
                       std::int64_t best_micro_batches) {
  const std::vector<Share> of = shares_of(other.composed, micro_batches),
                           than = shares_of(best.composed, best_micro_batches);
  std::size_t most = 0;
  for (std::size_t i = 1; i < of.size(); ++i) {
    if (of[i].seconds - than[i].seconds > of[most].seconds - than[most].seconds) most = i;
  }
  const double more = of[most].seconds - than[most].seconds;
  if (more <= 0) return "no part of it alone takes longer";
  return text(of[most].what, " ", format("%.4g s longer", more));
}

}  // namespace

std::vector<Share> binds_of(const SearchResult& found) {
  const Prediction& p = found.fit.front().verdict.predicted;
  double least = found.fit.front().considered.composed.seconds;
  const double mine = least;
  for (const Considered& each : found.considered) least = std::min(least, each.free_seconds);
  std::vector<Share> out = {
      {"products", part(p, TimePart::Products)},
      {"other kernels", part(p, TimePart::OtherKernels)},
      {"bandwidth", part(p, TimePart::Inner) + part(p, TimePart::Inter) + part(p, TimePart::Data) +
                        part(p, TimePart::Messages)},
      {"copies to the host", part(p, TimePart::HostCopies)},
      {"bubble", p.bubble},
      {"memory", mine - least}};
  std::ranges::stable_sort(out, std::ranges::greater(), &Share::seconds);
  return out;
}

std::vector<Alternative> alternatives_of(const SearchResult& found,
                                         const std::optional<std::int64_t>& cap) {
  const Candidate& best = found.fit.front();
  std::vector<Alternative> out;
  std::set<std::string> known = {""};
  const auto slower = [&](const Considered& each) {
    return text(
        "it takes ",
        format("%.1f %% longer: ",
               100 * (each.composed.seconds / best.considered.composed.seconds - 1)),
        why_slower(each, best.considered, each.micro_batches, best.considered.micro_batches));
  };
  const auto add = [&](const Considered& each, double seconds, std::int64_t bytes, bool whole) {
    if (out.size() < kMostAlternatives &&
        known.insert(respects(each.choice, best.considered.choice)).second)
      out.push_back({each.choice, seconds, bytes, whole, true, slower(each)});
  };
  for (const Candidate& each : found.fit)
    add(each.considered, each.seconds(), each.verdict.peak(), true);
  std::vector<const Considered*> rest;
  for (const Considered& each : found.considered) rest.push_back(&each);
  std::ranges::stable_sort(rest, {}, [](const Considered* each) { return each->composed.seconds; });
  for (const Considered* each : rest) {
    // What short models told too well has been compiled whole, or is not the best of its kind.
    if (each->composed.fits && each->composed.seconds >= best.considered.composed.seconds)
      add(*each, each->composed.seconds, static_cast<std::int64_t>(each->composed.peak_bytes()),
          false);
  }
  const auto faster = std::ranges::min_element(found.considered, {}, [](const Considered& each) {
    return each.composed.fits ? std::numeric_limits<double>::infinity() : each.free_seconds;
  });
  if (faster != found.considered.end() && !faster->composed.fits && cap &&
      faster->free_seconds < best.considered.composed.seconds) {
    const auto bytes = static_cast<std::int64_t>(faster->composed.peak_bytes());
    out.push_back({faster->choice, faster->free_seconds, bytes, false, false,
                   text("it does not fit: about ", bytes_text(bytes), ", and the cap is ",
                        bytes_text(*cap))});
  }
  return out;
}

}  // namespace tessera
