#include "tessera/planner/search.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <set>

#include "tessera/models/family.h"

namespace tessera {

namespace {

/// How often a choice whose whole plan does not fit is put together again, with less memory.
constexpr int kMostTries = 4;
/// What short models tell to be as little above a cap as this is compiled whole, which decides.
constexpr double kNear = 1.001;

StageCaps times(StageCaps caps, double factor) {
  for (double& of_stage : caps.device) of_stage *= factor;
  caps.all *= factor, caps.host *= factor;
  return caps;
}

std::vector<std::int64_t> stacks_of(const ModelConfig& model) {
  std::vector<std::int64_t> out;
  for (const LayerStack& stack : model.family->stacks(model)) out.push_back(stack.layers);
  return out;
}

/// Whether two plans are the same: their words leave out which layers are computed again.
using PlanName = std::pair<std::string, std::vector<std::int64_t>>;
PlanName name_of(const PlanChoice& choice) { return {to_text(choice), choice.recomputed}; }

}  // namespace

std::int64_t Verdict::peak() const {
  return *std::max_element(peak_bytes.begin(), peak_bytes.end());
}

std::int64_t Verdict::host() const {
  return *std::max_element(host_bytes.begin(), host_bytes.end());
}

std::int64_t Verdict::capped() const {
  return *std::max_element(capped_bytes.begin(), capped_bytes.end());
}

bool Verdict::fits(const StageCaps& caps) const {
  bool out = caps.host <= 0 || static_cast<double>(host()) <= caps.host;
  for (std::size_t s = 0; s < capped_bytes.size(); ++s)
    out = out && static_cast<double>(capped_bytes[s]) <= caps.of(s);
  return out;
}

double SearchResult::least_seconds() const {
  return fit.empty() ? kNoEnd : std::ranges::min_element(fit, {}, &Candidate::seconds)->seconds();
}

void choose(std::vector<Candidate>& fit) {
  if (fit.empty()) return;
  std::ranges::stable_sort(fit, {}, &Candidate::seconds);
  const double enough = fit.front().seconds() * (1 + kEquallyFast);
  const auto behind =
      std::ranges::find_if(fit, [&](const Candidate& each) { return each.seconds() > enough; });
  const auto least = std::min_element(fit.begin(), behind, [](const auto& a, const auto& b) {
    return a.verdict.capped() < b.verdict.capped();
  });
  std::rotate(fit.begin(), least, least + 1);
}

/// Plans to compare the best with, and what finding them may cost.
constexpr std::int64_t kBeside = 16, kBesideModels = 80;
constexpr double kBesideSeconds = 1.5;  // of the best

/// One run of the search.
struct Search::Run {
  StageCaps caps;
  SearchResult result;
  std::int64_t failures = 0;
  std::vector<Node> nodes;
  std::vector<std::size_t> unused;  // of nodes
  struct Entry {
    double bound;
    std::int64_t number;  // the older of equals first
    std::size_t node;
    auto operator<=>(const Entry&) const = default;
  };
  std::int64_t pushed = 0;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  std::set<PlanName> known, measured;

  void push(Node node) {
    if (node.bound == kNoEnd) return;
    std::size_t index = nodes.size();
    if (unused.empty()) {
      nodes.emplace_back();
    } else {
      index = unused.back();
      unused.pop_back();
    }
    open.push({node.bound, pushed++, index});
    nodes[index] = std::move(node);
  }
  Node pop() {
    const std::size_t index = open.top().node;
    open.pop();
    unused.push_back(index);
    return std::move(nodes[index]);
  }
  double least() const { return open.top().bound; }
  SearchProgress progress(std::int64_t short_models) const {
    return {std::ssize(result.considered),
            std::ssize(open),
            short_models,
            result.whole_plans,
            least(),
            result.fit.empty() ? nullptr : &result.fit.front()};
  }
  double best() const { return result.least_seconds(); }
  /// All that could be as fast as the fastest, where short models tell that much too much.
  double enough(double slack) const { return best() * (1 + slack) * (1 + kEquallyFast); }
};

Search::Search(const RunConfig& base, const Machine& machine, const Space& space,
               ShortModels& models, Verify verify, PlannerLimits limits, OnProgress on_progress)
    : space_(space),
      models_(models),
      verify_(std::move(verify)),
      limits_(limits),
      on_progress_(std::move(on_progress)),
      bounds_(base, machine, space, models),
      composer_(stacks_of(base.model), machine) {}

RecomputeOptions Search::ways_of(const PlanChoice& choice, bool exact) {
  PlanChoice less = choice;
  less.recompute = space_.less(choice.recompute);
  const std::int64_t m = space_.micro_batches(choice);
  if (exact) return {models_.of(less, m), models_.of(choice, m)};
  return {models_.about(less, m), models_.about(choice, m)};
}

/// What takes less memory takes no less time, so the bound stays.
void Search::push_leaner(const Node& node, Run& run) {
  for (PlanChoice& next : space_.leaner(node.choice)) {
    if (run.known.insert(name_of(next)).second)
      run.push({node.bound, Level::Start, std::move(next)});
  }
}

/// Within the caps. Where nothing fits, or what fits takes longer than with memory without end,
/// what takes less memory may be better.
void Search::put_together(const Node& node, const StageCaps& caps, Run& run) {
  const PlanChoice& choice = node.choice;
  const std::int64_t m = space_.micro_batches(choice);
  const RecomputeOptions ways = ways_of(choice, node.exact);
  if (ways.cheapest == nullptr || ways.smallest == nullptr) return;
  const Composition free = composer_.compose(choice, ways, m, {});
  const Composition composed = composer_.compose(choice, ways, m, times(caps, kNear));
  if (composed.layout.empty() || free.seconds == kNoEnd) return;
  PlanChoice whole = choice;
  if (choice.pipeline > 1) whole.layout = composed.layout;
  if (!space_.recompute_given() && choice.given_layers.empty()) {
    const std::int64_t again =
        std::accumulate(composed.recomputed.begin(), composed.recomputed.end(), std::int64_t{0});
    if (again == 0) whole.recompute = space_.less(choice.recompute);
    if (again > 0 && again < space_.layers()) whole.recomputed = composed.recomputed;
  }
  const Basis basis = node.exact ? Basis::Exact : Basis::About;
  run.result.considered.push_back({whole, composed, free.seconds, m, basis});
  const bool pays = !composed.fits || composed.seconds > free.seconds * (1 + 1e-9);
  if (pays && (!node.exact || !composed.fits)) push_leaner(node, run);
  if (!composed.fits) return;
  run.push({composed.seconds, Level::Leaf, choice,
            std::make_shared<Considered>(run.result.considered.back()), node.exact, node.tries});
}

/// What was put together of about the same short models, again of its own; then the whole plan;
/// where that does not fit, again with as much less memory as the whole takes more.
void Search::open_leaf(const Node& node, Run& run) {
  if (!node.exact) {
    Node again = node;
    again.exact = true;
    return put_together(again, run.caps, run);
  }
  if (!run.measured.insert(name_of(node.leaf->choice)).second) return;
  ++run.result.whole_plans;
  const std::optional<Verdict> verdict = verify_(node.leaf->choice);
  if (!verdict) {
    ++run.failures;
    return;
  }
  const bool host_fits =
      run.caps.host <= 0 || static_cast<double>(verdict->host()) <= run.caps.host;
  StageCaps next{{}, 0, run.caps.host};
  for (std::size_t s = 0; s < verdict->capped_bytes.size(); ++s) {
    const auto bytes = static_cast<double>(verdict->capped_bytes[s]);
    const double more = bytes - node.leaf->composed.stage_bytes[s];
    next.device.push_back(std::max(1.0, run.caps.of(s) - std::max(0.0, more)));
  }
  if (verdict->fits(run.caps)) {
    auto& fit = run.result.fit;
    fit.push_back({*node.leaf, *verdict});
    return choose(fit);
  }
  run.result.refuted.push_back({*node.leaf, *verdict});
  ++run.failures;
  if (!host_fits || node.tries >= kMostTries) return push_leaner(node, run);
  Node again = node;
  ++again.tries;
  put_together(again, next, run);
}

void Search::open(Node node, Run& run) {
  const auto push = [&](double bound, Level level, const PlanChoice& choice) {
    run.push({std::max(node.bound, bound), level, choice});
  };
  switch (node.level) {
    case Level::Sizes:
      for (const PlanChoice& split : space_.splits(node.choice))
        push(bounds_.of_split(split), Level::Split, split);
      return;
    case Level::Split:
      for (const PlanChoice& scheduled : space_.schedules(node.choice))
        push(bounds_.of_any_zero(scheduled), Level::Scheduled, scheduled);
      return;
    case Level::Scheduled:
      for (const PlanChoice& start : space_.starts(node.choice))
        push(bounds_.of_like(start), Level::Start, start);
      return;
    case Level::Start:
      return push(bounds_.of_like_played(node.choice, composer_), Level::Liked, node.choice);
    case Level::Liked: return push(bounds_.of_level(node.choice), Level::Levelled, node.choice);
    case Level::Levelled:
      return push(bounds_.of_choice(node.choice, composer_), Level::Choice, node.choice);
    case Level::Choice: return put_together(node, run.caps, run);
    case Level::Leaf: return open_leaf(node, run);
  }
}

/// Puts together some more plans that fit, for people who ask what else there is.
void Search::look_beside(Run& run) {
  if (run.result.fit.empty()) return;
  const std::int64_t most = models_.compiled() + kBesideModels;
  const auto fit = [&] {
    return std::ranges::count_if(run.result.considered,
                                 [](const Considered& each) { return each.composed.fits; });
  };
  while (!run.open.empty() && models_.compiled() < most && fit() < kBeside) {
    if (run.least() > run.best() * kBesideSeconds) return;
    Node node = run.pop();
    if (node.level != Level::Leaf) open(std::move(node), run);
  }
}

SearchResult Search::run(const StageCaps& caps) {
  Run run;
  run.caps = caps;
  for (const PlanChoice& frame : space_.frames())
    run.push({bounds_.of_sizes(frame), Level::Sizes, frame});
  const std::int64_t most = models_.compiled() + limits_.short_models;
  while (!run.open.empty()) {
    if (on_progress_) on_progress_(run.progress(models_.compiled()));
    if (run.least() > run.enough(limits_.slack)) break;
    const SearchResult& so_far = run.result;
    run.result.complete =
        models_.compiled() < most && std::ssize(so_far.fit) < limits_.whole_plans &&
        run.failures < limits_.failures && std::ssize(so_far.considered) < limits_.put_together;
    if (!run.result.complete) break;
    open(run.pop(), run);
  }
  look_beside(run);
  return std::move(run.result);
}

}  // namespace tessera
