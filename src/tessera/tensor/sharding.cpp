#include "tessera/tensor/sharding.h"

#include <algorithm>
#include <array>

#include "tessera/base/error.h"

namespace tessera {

namespace {
constexpr std::string_view kHost = "@host";

bool by_axis(const Partial& a, const Partial& b) { return a.axis < b.axis; }
}  // namespace

bool Sharding::is_replicated() const {
  return partial.empty() &&
         std::all_of(dims.begin(), dims.end(), [](const auto& axes) { return axes.empty(); });
}

int Sharding::dim_of(std::string_view axis) const {
  for (int dim = 0; dim < ndim(); ++dim) {
    for (const std::string& other : dims[static_cast<std::size_t>(dim)]) {
      if (other == axis) return dim;
    }
  }
  return -1;
}

bool Sharding::is_partial(std::string_view axis) const {
  return std::any_of(partial.begin(), partial.end(),
                     [&](const Partial& p) { return p.axis == axis; });
}

Sharding Sharding::without(std::string_view axis) const {
  Sharding out = *this;
  for (auto& axes : out.dims) std::erase(axes, axis);
  std::erase_if(out.partial, [&](const Partial& p) { return p.axis == axis; });
  return out;
}

Sharding Sharding::with(std::string_view axis, int dim) const {
  Sharding out = *this;
  out.dims.at(static_cast<std::size_t>(dim)).emplace_back(axis);
  return out;
}

Sharding Sharding::with_partial(std::string_view axis, Monoid monoid) const {
  Sharding out = *this;
  out.partial.push_back({std::string(axis), monoid});
  std::sort(out.partial.begin(), out.partial.end(), by_axis);
  return out;
}

std::string to_text(const Sharding& sharding) {
  std::string out = "[";
  for (int dim = 0; dim < sharding.ndim(); ++dim) {
    const auto& axes = sharding.dims[static_cast<std::size_t>(dim)];
    out += text(dim ? "," : "", axes.empty() ? std::string("-") : join(axes, "."));
  }
  out += "]";
  for (const Partial& p : sharding.partial) {
    out += "+" + p.axis;
    if (p.monoid != Monoid::Sum) out += text(":", p.monoid);
  }
  return out;
}

Sharding parse_sharding(std::string_view line) {
  const std::size_t close = line.find(']');
  require(!line.empty() && line[0] == '[' && close != std::string_view::npos, "sharding '", line,
          "' is not like [dp,-,tp] or [-]+dp");
  const auto axis = [&](const std::string& name) -> const std::string& {
    require(is_axis_name(name), "sharding '", line, "': '", name,
            "' is not an axis; a name has letters, digits and _ only");
    return name;
  };
  Sharding out;
  const std::string_view dims = line.substr(1, close - 1);
  if (!dims.empty()) {
    for (const std::string& dim : split(dims, ',')) {
      out.dims.push_back(dim == "-" ? std::vector<std::string>{} : split(dim, '.'));
      for (const std::string& name : out.dims.back()) axis(name);
    }
  }
  const std::string_view partial = line.substr(close + 1);
  require(partial.empty() || partial[0] == '+', "sharding '", line,
          "': partial axes are like [-]+dp, not '", partial, "'");
  for (const std::string& part : split(partial, '+')) {
    if (part.empty()) continue;
    const std::vector<std::string> words = split(part, ':');
    require(words.size() <= 2, "sharding '", line, "': '", part, "' is not like dp or dp:max");
    const Monoid monoid = words.size() == 2 ? parse_monoid(words[1]) : Monoid::Sum;
    out.partial.push_back({axis(words[0]), monoid});
  }
  std::sort(out.partial.begin(), out.partial.end(), by_axis);
  const auto twice =
      std::adjacent_find(out.partial.begin(), out.partial.end(),
                         [](const Partial& a, const Partial& b) { return a.axis == b.axis; });
  require(twice == out.partial.end(), "sharding '", line, "' is partial twice on one axis");
  return out;
}

Coordinates coordinates_of(const Mesh& mesh, std::int64_t rank) {
  Coordinates out;
  for (auto axis = mesh.axes().rbegin(); axis != mesh.axes().rend(); ++axis) {
    if (axis->level == Level::Time) continue;
    out[axis->name] = rank % axis->size;
    rank /= axis->size;
  }
  return out;
}

std::int64_t coordinate(const Mesh& mesh, const Coordinates& at, std::string_view axis) {
  if (const auto found = at.find(axis); found != at.end()) return found->second;
  const std::optional<AxisPart> part = parse_axis_part(axis);
  const auto found = part ? at.find(part->axis) : at.end();
  if (found == at.end()) return 0;
  const std::int64_t rest = mesh.size(part->axis) / (part->before * part->size);
  const std::int64_t n = part->size, c = (found->second / rest + n - part->turned) % n,
                     late = 2 * n - 1 - c;
  switch (part->half) {
    case Half::None: return c;
    case Half::Low: return 2 * c;
    case Half::High: return 2 * c + 1;
    case Half::Even: return c % 2 == 0 ? c : late;
    case Half::Odd: return c % 2 == 0 ? late : c;
  }
  return c;
}

std::vector<std::int64_t> ranks_along(const Mesh& mesh, const std::vector<std::string>& axes,
                                      std::int64_t rank) {
  std::vector<std::int64_t> out{rank};
  for (const std::string& axis : axes) {
    const std::int64_t size = mesh.size(axis), stride = mesh.stride(axis);
    std::vector<std::int64_t> more;
    for (const std::int64_t one : out) {
      const std::int64_t first = one - one / stride % size * stride;
      for (std::int64_t k = 0; k < size; ++k) more.push_back(first + k * stride);
    }
    out = std::move(more);
  }
  return out;
}

std::int64_t rank_at(const Mesh& mesh, const Coordinates& at) {
  std::int64_t out = 0;
  for (const Axis& axis : mesh.axes()) {
    if (axis.level == Level::Time) continue;
    const auto found = at.find(axis.name);
    out = out * axis.size + (found == at.end() ? 0 : found->second);
  }
  return out;
}

namespace {

/// Which shard a rank holds, and which addend and copy of it among the ranks of `among`.
std::vector<std::int64_t> position(const Sharding& sharding, const Coordinates& rank,
                                   const std::vector<std::string>& among, const Mesh& mesh) {
  const auto coordinate = [&](const std::string& axis) {
    return tessera::coordinate(mesh, rank, axis);
  };
  std::vector<std::int64_t> out;
  for (const auto& axes : sharding.dims) {
    out.push_back(0);
    for (const std::string& axis : axes)
      out.back() = out.back() * mesh.size(axis) + coordinate(axis);
  }
  const auto cuts = [&](const std::string& axis) {  // it, or all of it turned
    return std::ranges::any_of(sharding.dims, [&](const std::vector<std::string>& names) {
      return std::ranges::any_of(names, [&](const std::string& name) {
        const std::optional<AxisPart> turned = parse_axis_part(name);
        return name == axis || (turned && turned->axis == axis && turned->size == mesh.size(axis));
      });
    });
  };
  std::int64_t part = 0, copy = 0;
  for (const std::string& axis : among) {
    if (cuts(axis)) continue;
    std::int64_t& count = sharding.is_partial(axis) ? part : copy;
    count = count * mesh.size(axis) + coordinate(axis);
  }
  out.push_back(part);
  out.push_back(copy);
  return out;
}

}  // namespace

bool permutes(const Sharding& from, const Coordinates& sender, const Sharding& to,
              const Coordinates& receiver, const std::vector<std::string>& axes, const Mesh& mesh) {
  return position(from, sender, axes, mesh) == position(to, receiver, axes, mesh);
}

Extent extent(std::int64_t size, const std::vector<std::string>& axes, const Mesh& mesh,
              const Coordinates& at) {
  Extent e{0, size, size};
  for (const std::string& axis : axes) {
    const std::int64_t n = mesh.size(axis), chunk = (e.padded + n - 1) / n;
    const std::int64_t skip = coordinate(mesh, at, axis) * chunk;
    e = {e.start + skip, std::clamp(e.valid - skip, std::int64_t{0}, chunk), chunk};
  }
  return e;
}

Shape local_shape(const Shape& global, const Sharding& sharding, const Mesh& mesh) {
  check(sharding.ndim() == global.ndim(), "sharding ", sharding, " of a value of shape ", global);
  Shape out = global;
  for (int dim = 0; dim < global.ndim(); ++dim) {
    out[dim] = extent(global[dim], sharding.dims[static_cast<std::size_t>(dim)], mesh, {}).padded;
  }
  return out;
}

std::string to_text(const Placement& placement) {
  return text(placement.sharding, placement.memory == Memory::Host ? kHost : std::string_view());
}

Placement parse_placement(std::string_view line) {
  const bool host = line.size() > kHost.size() && line.substr(line.size() - kHost.size()) == kHost;
  return {parse_sharding(host ? line.substr(0, line.size() - kHost.size()) : line),
          host ? Memory::Host : Memory::Device};
}

double mean_share(const ChosenRows& rows, int members) {
  if (rows.choices == 0) return 1;
  double none = 1;
  for (std::int64_t i = 0; i < rows.choices; ++i) {
    const std::int64_t others = (members - 1) * rows.per_member - i;
    none *= others <= 0
                ? 0.0
                : static_cast<double>(others) / static_cast<double>(members * rows.per_member - i);
  }
  return 1 - none;
}

}  // namespace tessera
