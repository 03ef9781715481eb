#include "tessera/planner/search.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>

#include "tessera/models/family.h"
#include "tessera/train/memory_choice.h"

namespace tessera {

namespace {

/// Samples that are enough for products to be as fast as they get.
constexpr std::int64_t kManySamples = 64;
constexpr std::int64_t kSomeMicroBatches = 3;
constexpr double kCheaperAgain = 0.99;
constexpr int kMostTries = 4;
constexpr std::int64_t kMostFailures = 40;  // whole plans, as long as none fits

std::vector<std::int64_t> stacks_of(const ModelConfig& model) {
  std::vector<std::int64_t> out;
  for (const LayerStack& stack : model.family->stacks(model)) out.push_back(stack.layers);
  return out;
}

/// A size at which a sample takes no more than at `size`, but for next to nothing: few serve all.
std::int64_t larger_size(std::int64_t size) { return size <= 1 ? 1 : size <= 4 ? 4 : kManySamples; }

/// What tells choices apart before they have a layout.
std::string name_of(const PlanChoice& choice) {
  PlanChoice bare = choice;
  bare.layout.clear();
  bare.recomputed.clear();
  return to_text(bare);
}

}  // namespace

std::int64_t Verdict::peak() const {
  return *std::max_element(peak_bytes.begin(), peak_bytes.end());
}

std::int64_t Verdict::host() const {
  return *std::max_element(host_bytes.begin(), host_bytes.end());
}

bool Verdict::fits(const StageCaps& caps) const {
  bool out = caps.host <= 0 || static_cast<double>(host()) <= caps.host;
  for (std::size_t s = 0; s < peak_bytes.size(); ++s)
    out = out && static_cast<double>(peak_bytes[s]) <= caps.of(s);
  return out;
}

/// Plans to compare the best with, and what finding them may cost.
constexpr std::int64_t kBeside = 16, kBesideModels = 80;
constexpr double kBesideSeconds = 1.5;  // of the best

/// One run of the search.
struct Search::Run {
  StageCaps caps;
  SearchResult result;
  std::vector<Node> nodes;
  using Entry = std::pair<double, std::size_t>;  // the older of equals first
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  std::set<std::string> known, measured;

  void push(Node node) {
    open.emplace(node.bound, nodes.size());
    nodes.push_back(std::move(node));
  }
  Node pop() {
    const std::size_t index = open.top().second;
    open.pop();
    return std::move(nodes[index]);
  }
  double best() const {
    return result.fit.empty() ? std::numeric_limits<double>::infinity()
                              : result.fit.front().seconds();
  }
};

Search::Search(const RunConfig& base, const Machine& machine, const Space& space,
               ShortModels& models, Verify verify, PlannerLimits limits)
    : base_(base),
      machine_(machine),
      space_(space),
      models_(models),
      verify_(std::move(verify)),
      limits_(limits),
      composer_(stacks_of(base.model), machine) {}

/// What a sample takes at least in micro-batches of any size: what it takes in large ones, in which
/// products are as fast as they get, and what each step of a transfer takes is shared by many.
const Search::Floor& Search::floor_of(const PlanChoice& choice) {
  const auto key = std::tuple(choice.tensor, choice.context, choice.sequence, choice.floats);
  const auto [found, fresh] = floors_.try_emplace(key);
  if (!fresh) return found->second;
  PlanChoice large = choice;
  large.data = large.chunks = 1;
  large.schedule = PlanChoice().schedule;
  large.micro_batch_size = std::min(base_.global_batch_size, kManySamples);
  large.recompute = space_.recompute_told() ? base_.parallel.recompute : Recompute::None;
  large.zero = 0;
  Floor& out = found->second;
  out = {kNoEnd, kNoEnd};
  for (const std::string& order : orders_of(large)) {
    large.order = order;
    large.pipeline = 2;
    const ModelUse* use = models_.about(large, kSomeMicroBatches);
    large.pipeline = 1;
    if (use == nullptr) use = models_.about(large, kSomeMicroBatches);
    if (use == nullptr) continue;
    const Floor next = floor_of(*use, large.micro_batch_size);
    out = {std::min(out.layer, next.layer), std::min(out.all, next.all)};
  }
  return out;
}

Search::Floor Search::floor_of(const ModelUse& use, std::int64_t samples) const {
  const std::vector<std::int64_t> stacks = stacks_of(base_.model);
  Floor out{kNoEnd, use.before.micro_batch_seconds() + use.after.micro_batch_seconds()};
  for (std::size_t s = 0; s < stacks.size(); ++s) {
    const StageUse& layer = use.layer[s];
    out.layer = std::min(out.layer, layer.micro_batch_seconds());
    out.all += static_cast<double>(stacks[s]) * layer.micro_batch_seconds();
  }
  for (const StageUse& between : use.between) out.all += between.micro_batch_seconds();
  const auto n = static_cast<double>(samples);
  return {out.layer / n, out.all / n};
}

/// The stages' shares of whole layers, and the time until the last stage begins.
double Search::bound_of(const PlanChoice& c, const Floor& least) const {
  const std::int64_t p = c.pipeline, layers = space_.layers();
  const auto samples = static_cast<double>(base_.global_batch_size) / static_cast<double>(c.data);
  const auto most = static_cast<double>((layers + p - 1) / p);
  const double stage = std::max(least.all / static_cast<double>(p), least.layer * most);
  const std::int64_t fewest = layers / (p * std::max<std::int64_t>(space_.most_chunks(p), 1));
  const double ramp = least.layer / 3 * static_cast<double>(fewest * (p - 1) * c.micro_batch_size);
  return stage * samples + ramp;
}

/// Before a short model of its sizes is known: as if tensor and context parallelism cost nothing.
double Search::bound_of(const PlanChoice& frame) {
  double out = kNoEnd;
  for (const PlanChoice& split : space_.splits(frame)) {
    PlanChoice alone = split;
    alone.data = alone.tensor = alone.context = 1;
    alone.sequence = false;
    Floor least = floor_of(alone);
    least.layer /= static_cast<double>(frame.tensor * frame.context);
    least.all /= static_cast<double>(frame.tensor * frame.context);
    out = std::min(out, bound_of(split, least));
  }
  return out;
}

TwoWays Search::ways_of(const PlanChoice& choice, bool exact) {
  PlanChoice less = choice;
  less.recompute = space_.less(choice.recompute);
  const std::int64_t m = space_.micro_batches(choice);
  if (exact) return {models_.of(less, m), models_.of(choice, m)};
  return {models_.about(less, m), models_.about(choice, m)};
}

/// Of the same choice with larger micro-batches, in which a sample takes less: few serve all.
std::optional<ModelUse> Search::of_larger(const PlanChoice& choice) {
  PlanChoice larger = choice;
  larger.micro_batch_size = larger_size(choice.micro_batch_size);
  const ModelUse* use = models_.about(larger, kSomeMicroBatches);
  if (use == nullptr) return std::nullopt;
  return use->with_loop(static_cast<double>(choice.micro_batch_size) /
                        static_cast<double>(larger.micro_batch_size));
}

/// With each schedule, each order of the axes and each level of ZeRO to begin with, of what
/// computes least.
void Search::open_split(const Node& node, Run& run) {
  for (const PlanChoice& scheduled : space_.schedules(node.choice)) {
    for (const PlanChoice& start : space_.starts(scheduled)) {
      PlanChoice like = start;
      like.recompute = space_.least(start.recompute);
      const std::optional<ModelUse> use = of_larger(like);
      if (!use || !run.known.insert(name_of(like)).second) continue;
      const double least = composer_.least_seconds(like, *use, space_.micro_batches(like));
      run.push({std::max(node.bound, least), Level::Scheduled, like});
    }
  }
}

/// In stages, and in time.
void Search::open_scheduled(const Node& node, Run& run) {
  const std::optional<ModelUse> use = of_larger(node.choice);
  const Composition free =
      composer_.compose(node.choice, {&*use, &*use}, space_.micro_batches(node.choice), {});
  if (free.seconds < kNoEnd)
    run.push({std::max(node.bound, free.seconds), Level::Start, node.choice});
}

/// With memory without end.
void Search::open_start(const Node& node, Run& run) {
  const std::int64_t m = space_.micro_batches(node.choice);
  const ModelUse* use = models_.about(node.choice, m);
  if (use == nullptr) return;
  const Composition free = composer_.compose(node.choice, {use, use}, m, {});
  if (free.seconds < kNoEnd)
    run.push({std::max(node.bound, free.seconds), Level::PlanChoice, node.choice});
}

/// Computing again what takes one pass over memory may even take less time than reading it again.
void Search::push_leaner(const Node& node, double bound, bool elementwise_alone, Run& run) {
  for (PlanChoice& next : space_.leaner(node.choice)) {
    const bool elementwise =
        node.choice.recompute == Recompute::None && next.recompute == Recompute::Elementwise;
    if (elementwise_alone && !elementwise) continue;
    if (run.known.insert(name_of(next)).second)
      run.push({bound, Level::PlanChoice, std::move(next)});
  }
}

void Search::open_choice(const Node& node, Run& run) {
  const PlanChoice& choice = node.choice;
  const std::int64_t m = space_.micro_batches(choice);
  const TwoWays ways = ways_of(choice, node.exact);
  if (ways.less == nullptr || ways.more == nullptr) return;
  const Composition free = composer_.compose(choice, ways, m, {});
  const Composition composed =
      composer_.compose(choice, ways, m, node.tries > 0 ? node.caps : run.caps);
  if (composed.layout.empty() || free.seconds == kNoEnd) return;
  PlanChoice whole = choice;
  if (choice.pipeline > 1) whole.layout = composed.layout;
  if (!space_.recompute_told() && choice.told_layers.empty()) {
    const std::int64_t again =
        std::accumulate(composed.recomputed.begin(), composed.recomputed.end(), std::int64_t{0});
    if (again == 0) whole.recompute = space_.less(choice.recompute);
    if (again > 0 && again < space_.layers()) whole.recomputed = composed.recomputed;
  }
  const Basis basis = node.exact ? Basis::Exact : Basis::About;
  run.result.considered.push_back({whole, composed, free.seconds, m, basis});
  const bool pays = !composed.fits || composed.seconds > free.seconds * (1 + 1e-9);
  if (!node.exact || !composed.fits)
    push_leaner(node, pays ? free.seconds : free.seconds * kCheaperAgain, !pays, run);
  if (!composed.fits) return;
  run.push({composed.seconds, Level::Leaf, choice,
            std::make_shared<Considered>(run.result.considered.back()), node.exact, node.tries,
            node.caps});
}

void Search::open_leaf(const Node& node, Run& run) {
  if (!node.exact) {
    Node again = node;
    again.level = Level::PlanChoice;
    again.leaf = {};
    again.exact = true;
    return run.push(std::move(again));
  }
  if (!run.measured.insert(to_text(node.leaf->choice)).second) return;
  ++run.result.whole_plans;
  const std::optional<Verdict> verdict = verify_(node.leaf->choice);
  if (!verdict) return;
  const bool host_fits =
      run.caps.host <= 0 || static_cast<double>(verdict->host()) <= run.caps.host;
  StageCaps next{{}, 0, run.caps.host};
  for (std::size_t s = 0; s < verdict->peak_bytes.size(); ++s) {
    const auto bytes = static_cast<double>(verdict->peak_bytes[s]);
    const double more = bytes - node.leaf->composed.stage_bytes[s];
    next.device.push_back(std::max(1.0, run.caps.of(s) - std::max(0.0, more)));
  }
  if (verdict->fits(run.caps)) {
    auto& fit = run.result.fit;
    const auto at =
        std::ranges::upper_bound(fit, verdict->predicted.seconds, {}, &Candidate::seconds);
    fit.insert(at, {*node.leaf, *verdict});
    return;
  }
  run.result.refuted.push_back({*node.leaf, *verdict});
  if (!host_fits || node.tries >= kMostTries) return push_leaner(node, node.bound, false, run);
  Node again = node;  // with as much less as the whole takes more
  again.level = Level::PlanChoice;
  again.leaf = {};
  again.caps = next;
  ++again.tries;
  run.push(std::move(again));
}

void Search::open(Node node, Run& run) {
  switch (node.level) {
    case Level::Frame:
      for (PlanChoice& split : space_.splits(node.choice)) {
        const double bound = bound_of(split, floor_of(split));
        if (bound < kNoEnd) run.push({bound, Level::Split, std::move(split)});
      }
      return;
    case Level::Split: return open_split(node, run);
    case Level::Scheduled: return open_scheduled(node, run);
    case Level::Start: return open_start(node, run);
    case Level::PlanChoice: return open_choice(node, run);
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
    if (run.open.top().first > run.best() * kBesideSeconds) return;
    Node node = run.pop();
    if (node.level != Level::Leaf) open(std::move(node), run);
  }
}

SearchResult Search::run(const StageCaps& caps) {
  Run run;
  run.caps = caps;
  for (const PlanChoice& frame : space_.frames()) run.push({bound_of(frame), Level::Frame, frame});
  const std::int64_t most = models_.compiled() + limits_.short_models;
  while (!run.open.empty()) {
    if (run.open.top().first > run.best() * (1 + limits_.slack)) break;
    const std::int64_t wholes = run.result.fit.empty() ? kMostFailures : limits_.whole_plans;
    run.result.complete = models_.compiled() < most && run.result.whole_plans < wholes &&
                          std::ssize(run.result.considered) < limits_.put_together;
    if (!run.result.complete) break;
    open(run.pop(), run);
  }
  look_beside(run);
  return std::move(run.result);
}

}  // namespace tessera
