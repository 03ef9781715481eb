#include "tessera/passes/move_space.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>

#include "tessera/base/error.h"

namespace tessera {

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

/// One sharding, taken apart.
struct MoveSpace::View {
  View(const MoveProblem& problem, const OrderedPlacements& of)
      : on_axes(of), shard(problem.shape) {
    for (std::size_t a = 0; a < problem.axes.size(); ++a) {
      const int dim = of[a].on_axis;
      if (dim < 0) {
        if (is_partial(of[a].on_axis)) partial.push_back(static_cast<int>(a));
        continue;
      }
      Axes& axes = dims[static_cast<std::size_t>(dim)];
      const auto position = static_cast<std::size_t>(of[a].position);
      if (axes.size() <= position) axes.resize(position + 1);
      axes[position] = static_cast<int>(a);
    }
    for (int d = 0; d < shard.ndim(); ++d) shard[d] = cut(problem, shard[d], at(d), at(d).size());
    bytes = shard.numel() * problem.element;
  }

  /// The extent of a dim of `size` below its first `count` axes.
  static std::int64_t cut(const MoveProblem& problem, std::int64_t size, const Axes& axes,
                          std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      size = ceil_div(size, problem.axes[static_cast<std::size_t>(axes[i])].size);
    return size;
  }
  /// Per axis, what its coordinate counts: ranks between neighbouring shards of its dim, parts of a
  /// sum, or copies.
  void append_digits(const MoveProblem& problem, std::vector<std::int64_t>& out) const {
    const std::size_t begin = out.size();
    for (std::size_t a = 0; a < problem.axes.size(); ++a)
      out.push_back(is_partial(on_axes[a].on_axis) ? -2 : -1);
    for (int d = 0; d < shard.ndim(); ++d) {
      std::int64_t stride = 1;
      for (std::size_t k = at(d).size(); k-- > 0;) {
        const auto a = static_cast<std::size_t>(at(d)[k]);
        out[begin + a] = stride * Shape::kMaxDims + d;
        stride *= problem.axes[a].size;
      }
    }
  }
  const Axes& at(int dim) const { return dims[static_cast<std::size_t>(dim)]; }

  OrderedPlacements on_axes;
  std::array<Axes, Shape::kMaxDims> dims;  // major first
  Axes partial;
  Shape shard;  // elements that a rank stores
  std::int64_t bytes = 0;
};

std::size_t MoveSpace::Hash::operator()(const OrderedPlacements& on_axes) const {
  std::array<std::uint64_t, 3> words{};
  static_assert(sizeof on_axes <= sizeof words);
  std::memcpy(words.data(), on_axes.data(), sizeof on_axes);
  std::uint64_t mixed = 0;
  for (const std::uint64_t word : words) {
    mixed = (mixed ^ word) * 0x9E3779B97F4A7C15ULL;
    mixed ^= mixed >> 32;
  }
  return mixed;
}

MoveSpace::MoveSpace(MoveProblem problem, const OrderedPlacements& from,
                     const OrderedPlacements& target)
    : problem_(std::move(problem)), target_(target) {
  node(from);
  std::unordered_map<std::string, std::uint32_t> classes;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {  // grows while it is walked
    first_.push_back(static_cast<std::uint32_t>(steps_.size()));
    const View at(problem_, nodes_[i]);
    stored_.push_back(at.bytes);
    at.append_digits(problem_, digits_);
    const auto [found, fresh] =
        classes.emplace(permutation_class(at), static_cast<std::uint32_t>(members_.size()));
    if (fresh) members_.emplace_back();
    members_[found->second].push_back(static_cast<std::uint32_t>(i));
    class_.push_back(found->second);
    expand(at);
  }
  first_.push_back(static_cast<std::uint32_t>(steps_.size()));
}

std::uint32_t MoveSpace::node(const OrderedPlacements& on_axes) {
  const auto [found, fresh] = index_.emplace(on_axes, static_cast<std::uint32_t>(nodes_.size()));
  if (fresh) nodes_.push_back(on_axes);
  return found->second;
}

/// Whether `axis` may join `dim` at `position`.
bool MoveSpace::wanted(int axis, int dim, std::size_t position) const {
  const auto a = static_cast<std::size_t>(axis);
  if (problem_.directed) return target_[a] == at_dim(dim, position);
  return !problem_.axes[a].time || target_[a].on_axis == dim;
}

double MoveSpace::cost(MoveKind kind, std::int64_t bytes, std::int64_t ranks,
                       std::uint16_t axes) const {
  if (kind == MoveKind::Slice || kind == MoveKind::MarkPartial) return 0;
  const int steps =
      kind == MoveKind::Permute ? 1 : (kind == MoveKind::AllReduce ? 2 : 1) * steps_among(ranks);
  const LinkPrice& link = problem_.prices[axes];
  return static_cast<double>(bytes) * link.per_byte + steps * link.per_step;
}

void MoveSpace::add(const View& at, MoveKind kind, const Axes& axes, int from, int to,
                    std::int64_t bytes, const OrderedPlacements& after) {
  std::int64_t ranks = 1;
  std::uint16_t set = 0;
  for (const int a : axes) {
    set = static_cast<std::uint16_t>(set | (1U << a));
    ranks *= problem_.axes[static_cast<std::size_t>(a)].size;
  }
  check(after != at.on_axes, "a move that leads nowhere");
  steps_.push_back({kind, static_cast<std::int8_t>(from), static_cast<std::int8_t>(to), set,
                    node(after), bytes, cost(kind, bytes, ranks, set)});
}

void MoveSpace::expand(const View& at) {
  for (std::size_t a = 0; a < problem_.axes.size(); ++a) {
    if (at.on_axes[a].on_axis != kWhole) continue;
    const Axes axis{static_cast<int>(a)};
    OrderedPlacements after = at.on_axes;
    for (const int d : problem_.dims) {
      if (!wanted(axis[0], d, at.at(d).size())) continue;
      after[a] = at_dim(d, at.at(d).size());
      add(at, MoveKind::Slice, axis, -1, d, 0, after);
    }
    for (const Monoid monoid : problem_.monoids) {
      if (monoid == Monoid::One) continue;  // which elements a rank has to hold is not known here
      after[a] = {partial_placement(monoid)};
      const bool alike = std::all_of(at.partial.begin(), at.partial.end(), [&](const int other) {
        return at.on_axes[static_cast<std::size_t>(other)] == after[a];
      });
      if (alike && !problem_.axes[a].time && (!problem_.directed || target_[a] == after[a]))
        add(at, MoveKind::MarkPartial, axis, -1, -1, 0, after);
    }
  }
  for (const int d : problem_.dims) {
    const Axes& axes = at.at(d);
    Axes moved;  // more and more of the dim's minor axes
    OrderedPlacements gathered = at.on_axes;
    std::int64_t ranks = 1;
    for (std::size_t k = axes.size(); k-- > 0;) {
      const auto a = static_cast<std::size_t>(axes[k]);
      if (problem_.axes[a].time) break;
      moved.insert(moved.begin(), axes[k]);
      gathered[a] = {};
      ranks *= problem_.axes[a].size;
      add(at, MoveKind::AllGather, moved, d, -1, (ranks - 1) * at.bytes, gathered);
      for (const int to : problem_.dims) {
        if (to == d) continue;
        OrderedPlacements after = gathered;
        std::size_t position = at.at(to).size();
        bool legal = true;
        for (const int axis : moved) {
          legal = legal && wanted(axis, to, position);
          after[static_cast<std::size_t>(axis)] = at_dim(to, position++);
        }
        if (!legal) continue;
        Shape piece = at.shard;
        piece[to] = View::cut(problem_, piece[to], moved, moved.size());
        add(at, MoveKind::AllToAll, moved, d, to, (ranks - 1) * piece.numel() * problem_.element,
            after);
      }
    }
  }
  expand_partial(at);
}

void MoveSpace::expand_partial(const View& at) {
  Axes sums;
  for (const int a : at.partial) {
    if (!problem_.axes[static_cast<std::size_t>(a)].time) sums.push_back(a);
  }
  for (std::uint32_t set = 1; set < (1U << sums.size()); ++set) {
    // With many axes only single axes and the set of all are tried.
    if (problem_.directed && !std::has_single_bit(set) && set + 1 != (1U << sums.size())) continue;
    Axes axes;
    OrderedPlacements after = at.on_axes;
    std::int64_t ranks = 1;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (((set >> i) & 1U) == 0) continue;
      axes.push_back(sums[i]);
      after[static_cast<std::size_t>(sums[i])] = {};
      ranks *= problem_.axes[static_cast<std::size_t>(sums[i])].size;
    }
    add(at, MoveKind::AllReduce, axes, -1, -1, ceil_div(2 * (ranks - 1) * at.bytes, ranks), after);
  }
  for (const int d : problem_.dims) scatter(at, {}, sums, d);
}

/// Reduce-scatters of every ordered choice of partial axes that begins with `axes`.
void MoveSpace::scatter(const View& at, const Axes& axes, const Axes& left, int dim) {
  for (const int next : left) {
    if (!wanted(next, dim, at.at(dim).size() + axes.size())) continue;
    Axes more = axes, rest = left;
    more.push_back(next);
    std::erase(rest, next);
    OrderedPlacements after = at.on_axes;
    std::size_t position = at.at(dim).size();
    std::int64_t ranks = 1;
    for (const int a : more) {
      after[static_cast<std::size_t>(a)] = at_dim(dim, position++);
      ranks *= problem_.axes[static_cast<std::size_t>(a)].size;
    }
    Shape piece = at.shard;
    piece[dim] = View::cut(problem_, piece[dim], more, more.size());
    add(at, MoveKind::ReduceScatter, more, -1, dim, (ranks - 1) * piece.numel() * problem_.element,
        after);
    scatter(at, more, rest, dim);
  }
}

/// Two shardings of one class differ by a permutation of ranks: each dim is cut at the same places,
/// and as many ranks hold parts of a sum. A dim's cuts are written as the sizes of its axes, major
/// first; neighbours whose cuts are evenly spaced count as one axis. A dim cut by time is fixed.
std::string MoveSpace::permutation_class(const View& at) const {
  std::string key;
  const auto put = [&](std::int64_t value) {
    key.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (int d = 0; d < at.shard.ndim(); ++d) {
    const Axes& axes = at.at(d);
    const bool time = std::any_of(axes.begin(), axes.end(), [&](const int a) {
      return problem_.axes[static_cast<std::size_t>(a)].time;
    });
    std::int64_t size = 1, chunk = at.shard[d];  // of the axes merged so far, minor first
    for (std::size_t k = axes.size(); k-- > 0;) {
      const std::int64_t n = problem_.axes[static_cast<std::size_t>(axes[k])].size;
      const std::int64_t extent = View::cut(problem_, problem_.shape[d], axes, k + 1);
      if (time) {
        put(-1 - axes[k]);
      } else if (extent == size * chunk) {
        size *= n;
      } else {
        put(size);
        size = n, chunk = extent;
      }
    }
    put(size);
    put(0);
  }
  std::int64_t partial = 1;
  for (const int a : at.partial) {
    const auto axis = static_cast<std::size_t>(a);
    if (problem_.axes[axis].time) {
      put(-1 - a);
    } else {
      partial *= problem_.axes[axis].size;
    }
  }
  put(partial);
  put(at.partial.empty() ? 0 : at.on_axes[static_cast<std::size_t>(at.partial[0])].on_axis);
  return key;
}

/// Axes that count the same before and after take no part.
MoveSpace::Step MoveSpace::permute(std::uint32_t from, std::uint32_t to) const {
  const std::size_t count = problem_.axes.size();
  std::uint16_t axes = 0;
  for (std::size_t a = 0; a < count; ++a) {
    if (digits_[from * count + a] == digits_[to * count + a]) continue;
    axes = static_cast<std::uint16_t>(axes | (1U << a));
  }
  return {MoveKind::Permute,
          -1,
          -1,
          axes,
          to,
          stored_[from],
          cost(MoveKind::Permute, stored_[from], 1, axes)};
}

MoveSpace::Path MoveSpace::cheapest(const OrderedPlacements& from,
                                    const OrderedPlacements& to) const {
  const auto begin = index_.find(from), end = index_.find(to);
  if (begin == index_.end() || end == index_.end()) return {};
  struct Best {
    double cost = std::numeric_limits<double>::infinity();
    int moves = 0;
    std::uint32_t before = 0;
    Step step;
    bool done = false;
  };
  std::vector<Best> best(nodes_.size());
  using Entry = std::tuple<double, int, std::uint32_t>;  // cost, moves, node
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  best[begin->second].cost = 0;
  open.emplace(0.0, 0, begin->second);
  while (!open.empty()) {
    const std::uint32_t at = std::get<2>(open.top());
    open.pop();
    if (best[at].done) continue;
    best[at].done = true;
    if (at == end->second) break;
    const auto reach = [&](const Step& step) {
      Best& there = best[step.node];
      const double cost = best[at].cost + step.cost;
      const int moves = best[at].moves + 1;
      if (std::tie(cost, moves) >= std::tie(there.cost, there.moves)) return;
      there = {cost, moves, at, step, false};
      open.emplace(cost, moves, step.node);
    };
    for (std::uint32_t i = first_[at]; i < first_[at + 1]; ++i) reach(steps_[i]);
    const std::vector<std::uint32_t>& alike = members_[class_[at]];
    if (problem_.directed) {  // classes are large
      if (class_[at] == class_[end->second]) reach(permute(at, end->second));
    } else {
      for (const std::uint32_t other : alike) {
        if (other != at && !best[other].done) reach(permute(at, other));
      }
    }
  }
  Path path;
  path.found = best[end->second].done;
  path.cost = best[end->second].cost;
  for (std::uint32_t at = end->second; path.found && at != begin->second; at = best[at].before)
    path.steps.push_back(best[at].step);
  std::reverse(path.steps.begin(), path.steps.end());
  return path;
}

double MoveSpace::cheapest_cost(const OrderedPlacements& from, const OrderedPlacements& to) {
  const auto begin = index_.find(from), end = index_.find(to);
  if (begin == index_.end() || end == index_.end()) return std::numeric_limits<double>::infinity();
  std::vector<double>& costs = costs_[begin->second];
  if (costs.empty()) costs = costs_from(begin->second);
  return costs[end->second];
}

std::vector<double> MoveSpace::costs_from(std::uint32_t from) const {
  std::vector<double> out(nodes_.size(), std::numeric_limits<double>::infinity());
  std::vector<bool> done(nodes_.size(), false);
  using Entry = std::pair<double, std::uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  out[from] = 0;
  open.emplace(0.0, from);
  while (!open.empty()) {
    const std::uint32_t at = open.top().second;
    open.pop();
    if (done[at]) continue;
    done[at] = true;
    const auto reach = [&](const Step& step) {
      const double cost = out[at] + step.cost;
      if (cost >= out[step.node]) return;
      out[step.node] = cost;
      open.emplace(cost, step.node);
    };
    for (std::uint32_t i = first_[at]; i < first_[at + 1]; ++i) reach(steps_[i]);
    for (const std::uint32_t other : members_[class_[at]]) {
      if (!done[other]) reach(permute(at, other));
    }
  }
  return out;
}

}  // namespace tessera
