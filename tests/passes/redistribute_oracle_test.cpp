// The planner against an oracle that knows nothing of it: all shardings, every pair of them asked
// whether one move joins them and at what price, and the least sums of prices by Bellman and Ford.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "machine_line.h"
#include "passes/shardings.h"
#include "tessera/base/error.h"
#include "tessera/passes/redistribute.h"

namespace tessera {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class Oracle {
 public:
  Oracle(const Shape& shape, const Mesh& mesh, const Machine& machine)
      : shape_(shape), mesh_(mesh), machine_(machine), all_(all_shardings(shape.ndim(), mesh)) {
    for (const Sharding& s : all_) cuts_.push_back(cuts(s));
    for (std::size_t i = 0; i < all_.size(); ++i) {
      for (std::size_t j = 0; j < all_.size(); ++j) {
        const double price = i == j ? kNever : one_move(i, j);
        if (price < kNever) edges_.push_back({i, j, price});
      }
    }
  }

  const std::vector<Sharding>& all() const { return all_; }
  std::size_t edges() const { return edges_.size(); }

  /// Least seconds from `all()[from]` to each sharding, among those where `usable`.
  std::vector<double> least(std::size_t from, const std::vector<bool>& usable) const {
    std::vector<double> best(all_.size(), kNever);
    best[from] = 0;
    for (bool better = true; better;) {
      better = false;
      for (const Edge& e : edges_) {
        if (!usable[e.from] || !usable[e.to] || best[e.from] + e.price >= best[e.to]) continue;
        // Sums in another order differ in the last digits.
        better = better || best[e.from] + e.price < best[e.to] * (1 - 1e-12);
        best[e.to] = best[e.from] + e.price;
      }
    }
    return best;
  }

 private:
  struct Edge {
    std::size_t from, to;
    double price;
  };
  using Axes = std::vector<std::string>;

  /// Where each shard of each dim begins, in the order of shards; and how many parts make a sum.
  std::vector<std::vector<std::int64_t>> cuts(const Sharding& s) const {
    std::vector<std::vector<std::int64_t>> out;
    for (int d = 0; d < shape_.ndim(); ++d) {
      const Axes& axes = s.dims[static_cast<std::size_t>(d)];
      std::int64_t count = 1;
      for (const std::string& axis : axes) count *= mesh_.size(axis);
      out.emplace_back();
      for (std::int64_t shard = 0; shard < count; ++shard) {
        Coordinates at;
        std::int64_t rest = shard;
        for (std::size_t k = axes.size(); k-- > 0;) {
          at[axes[k]] = rest % mesh_.size(axes[k]);
          rest /= mesh_.size(axes[k]);
        }
        out.back().push_back(extent(shape_[d], axes, mesh_, at).start);
      }
    }
    out.push_back({1});
    for (const Partial& p : s.partial) out.back()[0] *= mesh_.size(p.axis);
    return out;
  }

  /// The axis's coordinate counts this: (dim, distance of neighbours in shards), sums or copies.
  std::pair<int, std::int64_t> role(const Sharding& s, const std::string& axis) const {
    const int dim = s.dim_of(axis);
    if (dim < 0) return {s.is_partial(axis) ? -2 : -1, 0};
    const Axes& axes = s.dims[static_cast<std::size_t>(dim)];
    std::int64_t stride = 1;
    for (std::size_t k = axes.size(); axes[--k] != axis;) stride *= mesh_.size(axes[k]);
    return {dim, stride};
  }

  double seconds(const Axes& axes, std::int64_t bytes, double steps) const {
    double per_byte = 0, us = 0;  // per byte: whole femtoseconds
    for (const Axis& axis : mesh_.axes()) {
      if (std::find(axes.begin(), axes.end(), axis.name) == axes.end()) continue;
      const LinkSpeed& link = machine_.link(axis.level);
      per_byte = std::max(per_byte, std::round(1e6 / link.gigabytes_per_s));
      us = std::max(us, link.microseconds);
    }
    return 1e-15 * static_cast<double>(bytes) * per_byte + 1e-6 * us * steps;
  }

  /// What lies behind `prefix` in `axes`; nothing if that does not begin them.
  static bool behind(const Axes& prefix, const Axes& axes, Axes& out) {
    if (axes.size() <= prefix.size() || !std::equal(prefix.begin(), prefix.end(), axes.begin()))
      return false;
    out.assign(axes.begin() + static_cast<std::ptrdiff_t>(prefix.size()), axes.end());
    return true;
  }

  /// The price of the one move that leads from i to j.
  double one_move(std::size_t i, std::size_t j) const {
    const Sharding &from = all_[i], &to = all_[j];
    Axes left, joined, finished, marked;  // dims and sums
    int left_dim = -1, joined_dim = -1, changed = 0;
    for (int d = 0; d < shape_.ndim(); ++d) {
      const Axes &a = from.dims[static_cast<std::size_t>(d)],
                 &b = to.dims[static_cast<std::size_t>(d)];
      if (a == b) continue;
      ++changed;
      if (behind(b, a, left)) left_dim = d;
      if (behind(a, b, joined)) joined_dim = d;
    }
    for (const Partial& p : from.partial) {
      if (!to.is_partial(p.axis)) finished.push_back(p.axis);
    }
    for (const Partial& p : to.partial) {
      if (!from.is_partial(p.axis)) marked.push_back(p.axis);
    }
    const bool leaves = left_dim >= 0, joins = joined_dim >= 0;
    const auto sorted = [](Axes axes) {
      std::sort(axes.begin(), axes.end());
      return axes;
    };
    const auto ranks = [&](const Axes& axes) {
      std::int64_t n = 1;
      for (const std::string& axis : axes) n *= mesh_.size(axis);
      return n;
    };
    const auto stored = [&](const Sharding& s) {
      return 4 * local_shape(shape_, s, mesh_).numel();
    };  // f32
    double best = kNever;
    const auto offer = [&](const Axes& axes, std::int64_t bytes, double rounds) {
      const double steps = rounds * std::ceil(std::log2(static_cast<double>(ranks(axes))) - 1e-9);
      best = std::min(best, seconds(axes, bytes, steps));
    };
    if (changed == 0 && finished.empty() && marked.size() == 1) return 0;
    if (changed == 0 && marked.empty() && !finished.empty()) {
      const std::int64_t n = ranks(finished);
      offer(finished, (2 * (n - 1) * stored(from) + n - 1) / n, 2);
    }
    if (changed == 1 && joins && marked.empty() && finished.empty() && joined.size() == 1) return 0;
    if (changed == 1 && joins && marked.empty() && sorted(joined) == sorted(finished))
      offer(joined, (ranks(joined) - 1) * stored(to), 1);
    if (changed == 1 && leaves && marked.empty() && finished.empty())
      offer(left, (ranks(left) - 1) * stored(from), 1);
    if (changed == 2 && leaves && joins && left == joined && marked.empty() && finished.empty()) {
      Sharding both = from;  // a piece is cut in both dims
      for (const std::string& axis : joined)
        both.dims[static_cast<std::size_t>(joined_dim)].push_back(axis);
      offer(left, (ranks(left) - 1) * stored(both), 1);
    }
    if (cuts_[i] == cuts_[j]) {
      Axes axes;
      for (const Axis& axis : mesh_.axes()) {
        if (role(from, axis.name) != role(to, axis.name)) axes.push_back(axis.name);
      }
      best = std::min(best, seconds(axes, stored(from), 1));
    }
    return best;
  }

  Shape shape_;
  Mesh mesh_;
  Machine machine_;
  std::vector<Sharding> all_;
  std::vector<std::vector<std::vector<std::int64_t>>> cuts_;
  std::vector<Edge> edges_;
};

/// Compares all targets of some sources (all, if `sources` is 0), with every axis at hand and with
/// only those that a pair names.
int compare(const char* mesh_line, const Shape& shape, const char* machine_line, int sources) {
  const Mesh mesh = parse_mesh(mesh_line);
  const Machine machine = parse_machine(machine_line);
  const Oracle oracle(shape, mesh, machine);
  const std::vector<Sharding>& all = oracle.all();
  std::vector<std::string> names;
  for (const Axis& axis : mesh.axes()) names.push_back(axis.name);
  Redistributor helped(mesh, machine, names), plain(mesh, machine);
  std::mt19937 random(7);
  int pairs = 0, split = 0;
  const auto check_pair = [&](Redistributor& planner, std::size_t i, std::size_t j, double least) {
    const Redistribution& plan = planner.plan(shape, DType::F32, all[i], all[j]);
    const std::string line = text(mesh_line, " ", shape, " ", machine_line, " from ", all[i],
                                  " to ", all[j], ": ", join(plan.moves, ", "));
    if (plan.view) {  // the oracle moves values as they are
      EXPECT_LT(plan.seconds, least) << line << " on " << to_text(plan.view->shape);
      ++split;
    } else {
      EXPECT_NEAR(plan.seconds, least, 1e-9 * least + 1e-15) << line;
    }
    ++pairs;
  };
  const int count = sources == 0 ? static_cast<int>(all.size()) : sources;
  for (int k = 0; k < count && !::testing::Test::HasFailure(); ++k) {
    const std::size_t i = sources == 0 ? static_cast<std::size_t>(k) : random() % all.size();
    const std::vector<double> least = oracle.least(i, std::vector<bool>(all.size(), true));
    for (std::size_t j = 0; j < all.size(); ++j) check_pair(helped, i, j, least[j]);
    // Few of the pairs leave an axis out; those that do, by the set of axes.
    std::map<std::vector<std::string>, std::vector<double>> within;
    for (std::size_t j = 0; j < all.size(); ++j) {
      const auto names_in = [&](const Sharding& s, const std::string& axis) {
        return s.dim_of(axis) >= 0 || s.is_partial(axis);
      };
      std::vector<std::string> idle;
      for (const std::string& axis : names) {
        if (!names_in(all[i], axis) && !names_in(all[j], axis)) idle.push_back(axis);
      }
      if (idle.empty()) continue;
      auto& costs = within[idle];
      if (costs.empty()) {
        std::vector<bool> usable;
        for (const Sharding& s : all)
          usable.push_back(std::none_of(idle.begin(), idle.end(), [&](const std::string& axis) {
            return names_in(s, axis);
          }));
        costs = oracle.least(i, usable);
      }
      check_pair(plain, i, j, costs[j]);
    }
  }
  ::testing::Test::RecordProperty(text(mesh_line, " ", shape, " pairs"), pairs);
  std::printf("%-28s %-10s %5zu shardings %7zu moves %7d pairs, %d on a split view\n", mesh_line,
              to_text(shape).c_str(), all.size(), oracle.edges(), pairs, split);
  return pairs;
}

constexpr const char* kBytesOnly =
    "core=10GB/s+0us socket=10GB/s+0us host=10GB/s+0us rack=10GB/s+0us";

TEST(RedistributeOracle, AllPairs) {
  for (const char* machine : {"", kBytesOnly}) {
    compare("a=2 b=4", {16, 64}, machine, 0);
    compare("a=2 b=2@rack", {6, 5, 3}, machine, 0);
    compare("a=2 b=2 c=2", {16, 64}, machine, 0);
    compare("a=3 b=2@host c=2", {1000, 7}, machine, 0);
    compare("a=2 b=2@host c=2@rack", {4096}, machine, 0);
  }
}

TEST(RedistributeOracle, FourAxesAndThreeDims) {
  compare("a=2 b=2 c=2 d=2", {64, 32, 16}, kBytesOnly, 2);
  compare("a=2@rack b=2@host c=2 d=2", {640, 320, 160}, "", 2);
  compare("a=3 b=2 c=2@host d=2", {7, 50, 3}, "", 2);
  compare("a=2 b=2 c=4@socket d=3", {1024, 1024}, "", 3);
}

}  // namespace
}  // namespace tessera
