#include "tessera/planner/explain.h"

#include <algorithm>
#include <set>

#include "tessera/base/format.h"
#include "tessera/base/text.h"
#include "tessera/planner/knobs.h"

namespace tessera {

namespace {

constexpr std::size_t kMostAlternatives = 6;

double part(const Prediction& predicted, TimePart which) {
  return predicted.exposed[static_cast<std::size_t>(which)];
}

/// Where the busiest stage of a composition spends a step.
std::vector<Share> shares_of(const Considered& of) {
  const auto m = static_cast<double>(of.micro_batches);
  const StageUse& busiest = of.composed.busiest;
  return {{"products", m * busiest[StageUse::kProducts]},
          {"other kernels", m * busiest[StageUse::kKernels]},
          {"transfers inside layers", m * busiest[StageUse::kInner]},
          {"transfers of gradients and states", m * busiest[StageUse::kData]},
          {"copies to the host", m * busiest[StageUse::kCopies]},
          {"the update", busiest[StageUse::kUpdate]},
          {"waiting", of.composed.bubble * of.composed.loop_seconds}};
}

/// The same of a whole plan.
std::vector<Share> shares_of(const Prediction& p) {
  return {{"products", part(p, TimePart::Products)},
          {"other kernels", part(p, TimePart::OtherKernels)},
          {"transfers inside layers", part(p, TimePart::Inner) + part(p, TimePart::Inter)},
          {"transfers of gradients and states", part(p, TimePart::Data)},
          {"messages between stages", part(p, TimePart::Messages)},
          {"copies to the host", part(p, TimePart::HostCopies)},
          {"waiting", p.bubble}};
}

/// In which respects a plan differs from the best, in a word each.
std::string respects(const PlanChoice& a, const PlanChoice& b, const RunConfig& base) {
  std::vector<std::string_view> out;
  bool order = false;
  const RunConfig of_a = with(base, a), of_b = with(base, b);
  for (const Knob& knob : knobs()) {
    const Field& field = *find_field(knob.field).field;
    if (knob.respect.empty() || get_text(field, of_a) == get_text(field, of_b)) continue;
    if (knob.field == "rank-order")
      order = true;  // it follows from other sizes
    else if (out.empty() || out.back() != knob.respect)
      out.push_back(knob.respect);
  }
  if (out.empty() && order) out.emplace_back("order");
  return join(out);
}

/// "it takes 3.1 % longer: waiting 2.5 ms longer, partly made up by products, 0.4 ms shorter"
std::string why_slower(double ratio, const std::vector<Share>& of, const std::vector<Share>& than) {
  std::vector<Share> more;
  for (std::size_t i = 0; i < of.size(); ++i)
    more.push_back({of[i].what, of[i].seconds - than[i].seconds});
  const Share most = *std::ranges::max_element(more, {}, &Share::seconds),
              least = *std::ranges::min_element(more, {}, &Share::seconds);
  std::string out = text(
      "it takes ", format(ratio < 1.001 ? "%.2f %%" : "%.1f %%", 100 * (ratio - 1)), " longer");
  if (most.seconds <= 0) return out;
  out += text(": ", most.what, " ", seconds_text(most.seconds), " longer");
  if (-least.seconds > most.seconds / 20)
    out += text(", partly made up by ", least.what, ", ", seconds_text(-least.seconds), " shorter");
  return out;
}

/// Without what follows from the caps.
PlanChoice bare(PlanChoice choice) {
  choice.layout.clear();
  choice.recomputed.clear();
  return choice;
}

/// What is told of the alternatives of one best plan.
class Alternatives {
 public:
  Alternatives(const SearchResult& found, const RunConfig& base, const StageCaps& caps)
      : found_(found), base_(base), caps_(caps), best_(found.fit.front()) {
    about_ = &best_.considered;
    for (const Considered& each : found.considered)
      if (each.basis == Basis::About && bare(each.choice) == bare(best_.considered.choice))
        about_ = &each;
  }

  std::vector<Alternative> all() {
    for (const Candidate& each : found_.fit) {
      const auto more = static_cast<double>(each.verdict.capped() - best_.verdict.capped());
      add({each.considered.choice, each.seconds(), each.verdict.peak(), true, true,
           why_not(each.seconds(), more, shares_of(each.verdict.predicted),
                   shares_of(best_.verdict.predicted))});
    }
    std::vector<const Considered*> rest;
    for (const Considered& each : found_.considered)
      if (each.composed.fits && !compiled(each) && ratio_of(each, each.composed.seconds) >= 1)
        rest.push_back(&each);
    std::ranges::stable_sort(
        rest, {}, [&](const Considered* each) { return ratio_of(*each, each->composed.seconds); });
    for (const Considered* each : rest) {
      if (out_.size() == kMostAlternatives) break;
      const double seconds = ratio_of(*each, each->composed.seconds) * best_.seconds(),
                   more = each->composed.peak_bytes() - like(*each).composed.peak_bytes();
      add({each->choice, seconds, bytes_of(*each), false, true,
           why_not(seconds, more, shares_of(*each), shares_of(like(*each)))});
    }
    add_fastest_that_does_not_fit();
    return std::move(out_);
  }

 private:
  /// What short models of the same kind tell of the best.
  const Considered& like(const Considered& of) const {
    return of.basis == Basis::About ? *about_ : best_.considered;
  }
  double ratio_of(const Considered& of, double seconds) const {
    return seconds / like(of).composed.seconds;
  }
  static std::int64_t bytes_of(const Considered& of) {
    return static_cast<std::int64_t>(of.composed.peak_bytes());
  }
  bool compiled(const Considered& of) const {
    const auto same = [&](const Candidate& each) { return each.considered.choice == of.choice; };
    return std::ranges::any_of(found_.fit, same) || std::ranges::any_of(found_.refuted, same);
  }
  void add(Alternative next) {
    if (out_.size() < kMostAlternatives &&
        known_.insert(respects(next.choice, best_.considered.choice, base_)).second)
      out_.push_back(std::move(next));
  }

  /// Of a plan that fits, takes so long, and `more` bytes than the best.
  std::string why_not(double seconds, double more, const std::vector<Share>& of,
                      const std::vector<Share>& than) const {
    if (seconds > found_.least_seconds() * (1 + kEquallyFast))
      return why_slower(seconds / best_.seconds(), of, than);
    const std::string out = text("it takes the same time, within ", 100 * kEquallyFast, " %");
    if (more < 1) return out;
    return text(out, ", and ", bytes_text(static_cast<std::int64_t>(more)), " more memory");
  }

  /// What is above a cap; empty: nothing is.
  std::string above(double device, double host, bool about) const {
    const auto given = [&](const char* where, double bytes, const char* limit, double cap) {
      return text("it does not fit: ", about ? "about " : "",
                  bytes_text(static_cast<std::int64_t>(bytes)), " on the ", where, ", and ", limit,
                  " ", bytes_text(static_cast<std::int64_t>(cap)));
    };
    if (caps_.all > 0 && device > caps_.all)
      return given("device", device, "what may be planned is", caps_.all);
    if (caps_.host > 0 && host > caps_.host)
      return given("host", host, "a device has there", caps_.host);
    return "";
  }

  void add_fastest_that_does_not_fit() {
    Alternative out{{}, best_.seconds(), 0, false, false, ""};
    for (const Candidate& each : found_.refuted) {
      const Verdict& verdict = each.verdict;
      if (each.seconds() < out.seconds)
        out = {each.considered.choice,
               each.seconds(),
               verdict.peak(),
               true,
               false,
               above(static_cast<double>(verdict.capped()), static_cast<double>(verdict.host()),
                     false)};
    }
    for (const Considered& each : found_.considered) {
      const double seconds = ratio_of(each, each.free_seconds) * best_.seconds();
      if (each.composed.fits || seconds >= out.seconds) continue;
      const std::string why =
          above(each.composed.peak_bytes(), std::ranges::max(each.composed.host_bytes), true);
      if (!why.empty()) out = {each.choice, seconds, bytes_of(each), false, false, why};
    }
    if (!out.why.empty()) out_.push_back(std::move(out));
  }

  const SearchResult& found_;
  const RunConfig& base_;
  const StageCaps& caps_;
  const Candidate& best_;
  const Considered* about_ = nullptr;
  std::vector<Alternative> out_;
  std::set<std::string> known_ = {""};
};

}  // namespace

std::string seconds_text(double seconds) {
  return seconds >= 1 ? format("%.3f s", seconds) : format("%.3f ms", 1e3 * seconds);
}

std::vector<Share> binds_of(const SearchResult& found, double free_seconds) {
  const Candidate& best = found.fit.front();
  const Prediction& p = best.verdict.predicted;
  std::vector<Share> out = {
      {"products", part(p, TimePart::Products)},
      {"other kernels", part(p, TimePart::OtherKernels)},
      {"bandwidth", part(p, TimePart::Inner) + part(p, TimePart::Inter) + part(p, TimePart::Data) +
                        part(p, TimePart::Messages)},
      {"copies to the host", part(p, TimePart::HostCopies)},
      {"bubble", p.bubble},
      {"memory", std::max(0.0, found.least_seconds() - free_seconds)}};
  std::ranges::stable_sort(out, std::ranges::greater(), &Share::seconds);
  return out;
}

std::vector<Alternative> alternatives_of(const SearchResult& found, const RunConfig& base,
                                         const StageCaps& caps) {
  return Alternatives(found, base, caps).all();
}

}  // namespace tessera
