#include "tessera/passes/redistribute.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/passes/move_space.h"

namespace tessera {

namespace {

constexpr std::array<std::string_view, 7> kKinds = {
    "slice", "mark_partial", "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute"};
constexpr std::size_t kExactAxes = 4;
constexpr std::size_t kExactDims = 3;

void validate(const Shape& shape, const Sharding& sharding, const Mesh& mesh) {
  require(sharding.ndim() == shape.ndim(), "sharding ", sharding, " of a value of shape ", shape,
          ": one has ", sharding.ndim(), " dims, the other ", shape.ndim());
  std::vector<std::string> seen;
  const auto see = [&](const std::string& axis) {
    require(mesh.has(axis), "sharding ", sharding, ": mesh '", mesh, "' has no axis '", axis, "'");
    require(std::find(seen.begin(), seen.end(), axis) == seen.end(), "sharding ", sharding,
            " has axis '", axis, "' twice");
    seen.push_back(axis);
  };
  for (const auto& axes : sharding.dims) std::for_each(axes.begin(), axes.end(), see);
  for (const Partial& p : sharding.partial) {
    see(p.axis);
    require(p.monoid == sharding.partial[0].monoid, "sharding ", sharding,
            " is partial by several reductions, whose order it does not say; finish one of them ",
            "first");
  }
}

/// The dims that either sharding cuts; others, largest first, until there are three.
std::vector<int> dims_of(const Shape& shape, const Sharding& from, const Sharding& to) {
  std::vector<int> order(static_cast<std::size_t>(shape.ndim()));
  std::iota(order.begin(), order.end(), 0);
  const auto cut = [&](const int d) {
    const auto dim = static_cast<std::size_t>(d);
    return !from.dims[dim].empty() || !to.dims[dim].empty();
  };
  std::stable_sort(order.begin(), order.end(), [&](const int a, const int b) {
    return cut(a) != cut(b) ? cut(a) : shape[a] > shape[b];
  });
  const auto needed = static_cast<std::size_t>(std::count_if(order.begin(), order.end(), cut));
  order.resize(std::min(order.size(), std::max(needed, kExactDims)));
  std::sort(order.begin(), order.end());
  return order;
}

OrderedPlacements encode(const Sharding& sharding, const std::vector<std::string>& axes) {
  OrderedPlacements out{};
  const auto index = [&](const std::string& axis) {
    return static_cast<std::size_t>(std::find(axes.begin(), axes.end(), axis) - axes.begin());
  };
  for (int d = 0; d < sharding.ndim(); ++d) {
    std::size_t position = 0;
    for (const std::string& axis : sharding.dims[static_cast<std::size_t>(d)])
      out[index(axis)] = at_dim(d, position++);
  }
  for (const Partial& p : sharding.partial) out[index(p.axis)] = {partial_placement(p.monoid)};
  return out;
}

Sharding decode(const OrderedPlacements& on_axes, const std::vector<std::string>& axes, int ndim) {
  Sharding out = Sharding::replicated(ndim);
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const int dim = on_axes[a].on_axis;
    if (dim >= 0) {
      auto& names = out.dims[static_cast<std::size_t>(dim)];
      const auto position = static_cast<std::size_t>(on_axes[a].position);
      if (names.size() <= position) names.resize(position + 1);
      names[position] = axes[a];
    } else if (is_partial(on_axes[a].on_axis)) {
      out = out.with_partial(axes[a], monoid_of(on_axes[a].on_axis));
    }
  }
  return out;
}

/// The axes that a step moved, in the order in which they lie in the dim that they left or joined.
std::vector<std::string> moved_axes(const MoveSpace::Step& step, const OrderedPlacements& before,
                                    const OrderedPlacements& after,
                                    const std::vector<std::string>& axes) {
  std::vector<std::size_t> moved;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (((step.axes >> a) & 1U) != 0) moved.push_back(a);
  }
  const OrderedPlacements& order = step.from >= 0 ? before : after;
  if (step.kind != MoveKind::Permute) {
    std::stable_sort(moved.begin(), moved.end(),
                     [&](const std::size_t a, const std::size_t b) { return order[a] < order[b]; });
  }
  std::vector<std::string> out;
  for (const std::size_t a : moved) out.push_back(axes[a]);
  return out;
}

/// False where no axis is in the way of another: of each dim at most one axis leaves, the last one,
/// or one joins.
bool gains_by_split(const Sharding& from, const Sharding& to, const Mesh& mesh) {
  for (std::size_t d = 0; d < from.dims.size(); ++d) {
    const std::vector<std::string>&before = from.dims[d], &after = to.dims[d];
    const auto [left, joined] =
        std::mismatch(before.begin(), before.end(), after.begin(), after.end());
    const auto leave = before.end() - left, join = after.end() - joined;
    if (leave > 1 || join > 1) return true;
    if (leave == 1 && join == 1 && mesh.size(*left) != mesh.size(*joined)) return true;
  }
  return false;
}

int parse_dim(std::string_view line, std::string_view digits) {
  if (digits.empty()) return -1;
  int dim = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), dim);
  require(error == std::errc() && end == digits.data() + digits.size() && dim >= 0 &&
              dim < Shape::kMaxDims,
          "move '", line, "': '", digits, "' is not a dim");
  return dim;
}

}  // namespace

std::string_view to_text(MoveKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

std::string to_text(const Move& move) {
  std::string dims;
  if (move.from >= 0 || move.to >= 0) {
    dims =
        text(" ", move.from >= 0 ? text(move.from) : "", "->", move.to >= 0 ? text(move.to) : "");
  }
  return text(move.kind, " ", join(move.axes, "."), dims, " ", move.bytes, "B ", move.after);
}

Move parse_move(std::string_view line) {
  const std::vector<std::string> words = split(line, ' ');
  require(words.size() == 4 || words.size() == 5, "move '", line,
          "' is not like all_to_all tp 0->1 4096B [-,tp]");
  Move out;
  const auto kind = std::find(kKinds.begin(), kKinds.end(), words[0]);
  require(kind != kKinds.end(), "move '", line, "': unknown kind '", words[0], "'; kinds are ",
          join(kKinds));
  out.kind = static_cast<MoveKind>(kind - kKinds.begin());
  out.axes = split(words[1], '.');
  for (const std::string& axis : out.axes)
    require(is_axis_name(axis), "move '", line, "': '", axis, "' is not an axis");
  if (words.size() == 5) {
    const std::size_t arrow = words[2].find("->");
    require(arrow != std::string::npos, "move '", line, "': dims are like 0->1, not '", words[2],
            "'");
    out.from = parse_dim(line, std::string_view(words[2]).substr(0, arrow));
    out.to = parse_dim(line, std::string_view(words[2]).substr(arrow + 2));
  }
  const std::string& bytes = words[words.size() - 2];
  const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), out.bytes);
  require(error == std::errc() && std::string_view(end) == "B" && out.bytes >= 0, "move '", line,
          "': '", bytes, "' is not like 4096B");
  out.after = parse_sharding(words.back());
  return out;
}

std::int64_t Redistribution::bytes() const {
  std::int64_t sum = 0;
  for (const Move& move : moves) sum += move.bytes;
  return sum;
}

namespace {

/// Prices of every set of these axes, indexed by its bits; along time nothing moves.
std::vector<LinkPrice> prices_of_sets(const std::vector<AxisSpan>& axes, const Machine& machine) {
  std::vector<LinkPrice> out(std::size_t{1} << axes.size());
  std::vector<AxisSpan> some;
  for (std::size_t set = 1; set < out.size(); ++set) {
    some.clear();
    for (std::size_t a = 0; a < axes.size(); ++a) {
      if ((set >> a & 1U) != 0 && axes[a].level != Level::Time) some.push_back(axes[a]);
    }
    out[set] = machine.price(some);
  }
  return out;
}

}  // namespace

/// One explored space and the names of its axes.
struct Redistributor::Search {
  std::vector<std::string> axes;
  MoveSpace space;
};

Redistributor::Redistributor(Mesh mesh, Machine machine, std::vector<std::string> helpers)
    : mesh_(std::move(mesh)), machine_(machine), helpers_(std::move(helpers)) {
  for (const std::string& axis : helpers_) {
    require(mesh_.has(axis), "helper: mesh '", mesh_, "' has no axis '", axis, "'");
    require(!mesh_.is_time(axis), "helper '", axis,
            "' is an axis of time, along which nothing moves");
  }
}

Redistributor::~Redistributor() = default;

const Redistribution& Redistributor::plan(const Shape& shape, DType dtype, const Sharding& from,
                                          const Sharding& to) {
  std::string key = text(shape, " ", dtype, " ", from, " ", to);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  validate(shape, from, mesh_);
  validate(shape, to, mesh_);
  std::optional<Redistribution> best = search(mesh_, shape, dtype, from, to, false);
  if (const auto view = split_view(shape, from, to, mesh_); view && !(view->shape == shape)) {
    std::optional<Redistribution> split =
        search(view->mesh, view->shape, dtype, view->from, view->to, true);
    if (split && (!best || split->seconds < best->seconds)) {
      best = std::move(split);
      best->view = view;
    }
  }
  require(best.has_value(), "no moves lead from ", from, " to ", to, " on mesh '", mesh_,
          "': what an axis of time cuts or sums cannot be gathered or reduced inside the loop");
  return known_.emplace(std::move(key), *std::move(best)).first->second;
}

/// The problem of one search.
struct Redistributor::Setup {
  MoveProblem problem;
  std::vector<std::string> axes;
  std::vector<AxisSpan> spans;
  OrderedPlacements begin{}, end{};
  std::string key;      // of its space
  bool shared = false;  // without time and with every move allowed, all pairs share one space
};

Redistributor::Setup Redistributor::set_up(const Mesh& mesh, const Shape& shape, DType dtype,
                                           const Sharding& from, const Sharding& to,
                                           bool split) const {
  Setup out;
  MoveProblem& problem = out.problem;
  problem.shape = shape;
  problem.element = size_of(dtype);
  problem.dims = dims_of(shape, from, to);
  std::vector<std::string>& axes = out.axes;
  bool time = false;
  for (const Axis& axis : mesh.axes()) {
    const auto names = [&](const Sharding& s) {
      return s.dim_of(axis.name) >= 0 || s.is_partial(axis.name);
    };
    const bool helps =
        !split && std::find(helpers_.begin(), helpers_.end(), axis.name) != helpers_.end();
    if (!names(from) && !names(to) && !helps) continue;
    const bool is_time = axis.level == Level::Time;
    axes.push_back(axis.name);
    out.spans.push_back(is_time ? AxisSpan{Level::Time} : span_of(mesh, axis.name));
    problem.axes.push_back({axis.size, is_time});
    time = time || is_time;
  }
  problem.directed = split || axes.size() > kExactAxes;
  for (const Sharding* s : {&from, &to}) {
    if (s->partial.empty()) continue;
    const Monoid monoid = s->partial[0].monoid;
    if (std::find(problem.monoids.begin(), problem.monoids.end(), monoid) == problem.monoids.end())
      problem.monoids.push_back(monoid);
  }
  out.shared = !time && !problem.directed;
  if (axes.size() > kMaxMoveAxes) return out;  // refused, or not tried
  out.begin = encode(from, axes);
  out.end = encode(to, axes);
  std::sort(problem.monoids.begin(), problem.monoids.end());
  out.key = text(shape, " ", dtype, " ", join(axes, "."), " ", join(problem.dims));
  for (const Monoid monoid : problem.monoids) out.key += text(" ", static_cast<int>(monoid));
  return out;
}

std::unique_ptr<Redistributor::Search> Redistributor::explore(Setup& setup) const {
  setup.problem.prices = prices_of_sets(setup.spans, machine_);
  return std::make_unique<Search>(
      Search{setup.axes, MoveSpace(std::move(setup.problem), setup.begin, setup.end)});
}

std::optional<Redistribution> Redistributor::search(const Mesh& mesh, const Shape& shape,
                                                    DType dtype, const Sharding& from,
                                                    const Sharding& to, bool split) {
  Setup setup = set_up(mesh, shape, dtype, from, to, split);
  const std::vector<std::string>& axes = setup.axes;
  if (split && axes.size() > kMaxMoveAxes) return std::nullopt;  // the value as it is may do
  require(axes.size() <= kMaxMoveAxes, "from ", from, " to ", to, ": ", axes.size(),
          " axes are more than ", kMaxMoveAxes, "; go in two steps");
  std::unique_ptr<Search> own;
  std::unique_ptr<Search>& search = setup.shared ? searches_[setup.key] : own;
  if (search == nullptr) search = explore(setup);
  const MoveSpace::Path path = search->space.cheapest(setup.begin, setup.end);
  if (!path.found) return std::nullopt;

  Redistribution out;
  out.seconds = path.cost * 1e-15;
  OrderedPlacements before = setup.begin;
  for (const MoveSpace::Step& step : path.steps) {
    const OrderedPlacements& after = search->space.on_axes(step.node);
    out.moves.push_back({step.kind, moved_axes(step, before, after, axes), step.from, step.to,
                         step.bytes, decode(after, axes, shape.ndim())});
    before = after;
  }
  return out;
}

double Redistributor::seconds(const Shape& shape, DType dtype, const Sharding& from,
                              const Sharding& to) {
  Setup setup = set_up(mesh_, shape, dtype, from, to, false);
  if (!setup.shared) return plan(shape, dtype, from, to).seconds;
  std::unique_ptr<Search>& search = searches_[setup.key];
  if (search == nullptr) search = explore(setup);
  double out = search->space.cheapest_cost(setup.begin, setup.end) * 1e-15;
  if (!gains_by_split(from, to, mesh_)) return out;
  const auto view = split_view(shape, from, to, mesh_);
  if (!view || view->shape == shape) return out;
  const auto split = this->search(view->mesh, view->shape, dtype, view->from, view->to, true);
  return split ? std::min(out, split->seconds) : out;
}

}  // namespace tessera
