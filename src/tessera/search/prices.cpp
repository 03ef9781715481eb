#include "tessera/search/prices.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/index.h"

namespace tessera {

Cost picoseconds(double seconds) { return std::round(1e12 * seconds); }

namespace {

/// The axes that cut dim `d`, major first, each by its new name.
std::string axes_on(const AxisPlacements& on_axes, int d, const std::vector<int>& names) {
  std::string out;
  for (std::size_t a = 0; a < names.size(); ++a) {
    if (on_axes[a] == d) out += static_cast<char>('a' + names[a]);
  }
  return out;
}

/// The axes along which it is a sum, in no order, and of which kind.
std::string sums_of(const AxisPlacements& on_axes, const std::vector<int>& names) {
  std::string out;
  for (std::size_t a = 0; a < names.size(); ++a) {
    if (is_partial(on_axes[a])) out += static_cast<char>('a' + names[a]);
  }
  std::sort(out.begin(), out.end());
  const auto sum = std::ranges::find_if(on_axes, is_partial);
  return sum == on_axes.end() ? out : out + std::to_string(static_cast<int>(monoid_of(*sum)));
}

}  // namespace

Prices::Prices(const Strategy& strategy, const Machine& machine)
    : axes_(strategy, machine),
      mesh_(strategy.mesh),
      machine_(machine),
      redistributor_(strategy.mesh, machine) {
  check(axes_.count() <= 8, "a search over ", axes_.count(), " axes");
  std::vector<int> names;
  for (int a = 0; a < axes_.count(); ++a) {
    names.push_back(a);
    if (!axes_.is_time(a)) ranks_ *= axes_[a].size;
  }
  constexpr std::size_t kMost = 24;
  do {
    if (alike(names)) renamings_.push_back(names);
  } while (renamings_.size() < kMost && std::next_permutation(names.begin(), names.end()));
}

/// True where every set of axes costs what the set of those costs that are called so instead.
bool Prices::alike(const std::vector<int>& names) const {
  for (unsigned set = 1; set < 1U << names.size(); ++set) {
    std::vector<AxisSpan> mine, others;
    for (int a = 0; a < axes_.count(); ++a) {
      if ((set >> a & 1U) == 0) continue;
      const int other = names[at(a)];
      if (axes_[a].size != axes_[other].size || axes_.is_time(a) != axes_.is_time(other))
        return false;
      if (axes_.is_time(a)) continue;
      mine.push_back(span_of(mesh_, axes_[a].name));
      others.push_back(span_of(mesh_, axes_[other].name));
    }
    const LinkPrice a = machine_.price(mine), b = machine_.price(others);
    if (a.per_byte != b.per_byte || a.per_step != b.per_step) return false;
  }
  return true;
}

std::size_t Prices::Hash::operator()(const Key& key) const {
  std::uint64_t h = key.on_axes * 0x9e3779b97f4a7c15u + key.type;
  h ^= h >> 29;
  return h * 0xbf58476d1ce4e5b9u;
}

std::uint64_t Prices::code(const AxisPlacements& on_axes) const {
  std::uint64_t out = 0;
  for (const AxisPlacement on_axis : on_axes)
    out = out << 4 | static_cast<std::uint64_t>(on_axis - kPartialMin);
  return out;
}

Cost Prices::move(const TensorType& type, const AxisPlacements& from, const AxisPlacements& to,
                  Traffic traffic) {
  if (from == to) return 0;
  const CostWeights& weights = machine_.weights;
  const double weight = traffic == Traffic::Finish    ? weights.beta1
                        : traffic == Traffic::Between ? weights.beta2
                                                      : weights.gamma;
  const Cost out = raw(type, from, to);
  return weight == 1 || out == kNever ? out : std::round(weight * out);
}

Cost Prices::raw(const TensorType& type, const AxisPlacements& from, const AxisPlacements& to) {
  std::size_t id = 0;
  while (id < types_.size() && !(types_[id] == type)) ++id;
  if (id == types_.size()) types_.push_back(type);
  const auto [found, is_new] = known_.try_emplace(Key{id, code(from) << 32 | code(to)}, kNever);
  if (!is_new) return found->second;
  const auto [alike, is_first] = known_alike_.try_emplace(like(type, from, to), kNever);
  if (is_first) {
    const int ndim = type.ndim();
    const Sharding before = axes_.write(from, ndim)->sharding,
                   after = axes_.write(to, ndim)->sharding;
    // Sums and maxima at once: partition could not do it either.
    const bool mixed = !before.partial.empty() && !after.partial.empty() &&
                       before.partial[0].monoid != after.partial[0].monoid;
    if (!mixed)
      alike->second = picoseconds(redistributor_.seconds(type.shape, type.dtype, before, after));
  }
  return found->second = alike->second;
}

/// Equal for moves that cost the same: of as many bytes between dims that are cut alike, whatever
/// axes of one kind and dims are called. A dim that all ranks together divide may be any such dim.
std::string Prices::like(const TensorType& type, const AxisPlacements& from,
                         const AxisPlacements& to) const {
  const auto kind = [&](int d) {
    return type.shape[d] % ranks_ == 0 ? std::string("*") : std::to_string(type.shape[d]);
  };
  std::vector<int> used, others;
  for (int d = 0; d < type.ndim(); ++d) {
    const auto cut = [&](AxisPlacement on_axis) { return on_axis == d; };
    (std::ranges::any_of(from, cut) || std::ranges::any_of(to, cut) ? used : others).push_back(d);
  }
  // Moves may go over as many others, the largest ones (passes/redistribute.h).
  std::stable_sort(others.begin(), others.end(),
                   [&](int a, int b) { return type.shape[a] > type.shape[b]; });
  others.resize(std::min(others.size(), used.size() < 3 ? 3 - used.size() : 0));
  std::string best;  // the first one in the order of texts, of all renamings
  for (const std::vector<int>& names : renamings_) {
    std::vector<std::string> dims;
    for (const int d : used)
      dims.push_back(kind(d) + "<" + axes_on(from, d, names) + ">" + axes_on(to, d, names));
    std::sort(dims.begin(), dims.end());
    const std::string all = join(dims, "") + "+" + sums_of(from, names) + "/" + sums_of(to, names);
    if (best.empty() || all < best) best = all;
  }
  for (const int d : others) best += kind(d) + ",";
  return best + std::to_string(type.numel()) + "x" + std::to_string(size_of(type.dtype));
}

Cost Prices::work(const KernelWork& kernel) const {
  return picoseconds(machine_.weights.alpha * machine_.kernel_seconds(kernel));
}

Cost Prices::streamed(double bytes) const { return work({0, bytes}); }

std::int64_t Prices::parts(const AxisPlacements& on_axes) const {
  std::int64_t out = 1;
  for (int a = 0; a < axes_.count(); ++a) {
    if (on_axes[at(a)] >= 0) out *= axes_[a].size;
  }
  return out;
}

}  // namespace tessera
