#include "tessera/passes/state_places.h"

#include <algorithm>
#include <utility>

#include "tessera/ir/builder.h"
#include "tessera/ir/op_paths.h"

namespace tessera {

namespace {

/// Errors: the pin has other dims than the value, or leaves a sum to be finished.
void require_fits(const Sharding& pin, const char* what, const std::string& name,
                  const Shape& shape) {
  require(pin.ndim() == shape.ndim(), what, " '", name, "' of shape ", shape, " is pinned to ", pin,
          ", which has ", pin.ndim(), " dims; give it ", shape.ndim());
  require(pin.partial.empty(), what, " '", name, "' is pinned to ", pin,
          ", a sum to be finished; a ", what, " is whole or cut");
}

}  // namespace

StatePlaces::StatePlaces(const Graph& graph, const Strategy& strategy, const Axes& axes)
    : strategy_(strategy), axes_(axes), copied_(copied_parameters(graph)) {
  std::vector<std::string> wrong;
  for (const State& state : graph.states()) {
    try {
      places_.emplace(state.path, place(state, graph.type(state.value)));
    } catch (const Error& error) {
      wrong.push_back(error.what());
    }
  }
  require(wrong.empty(), join(wrong, "\n"));
}

StatePlaces::Places StatePlaces::place(const State& state, const TensorType& type) const {
  Places out;
  out.use = axes_.whole();
  if (const Sharding* pin = find(parameter_path(state))) {
    require_fits(*pin, "state", state.path, type.shape);
    out.use = axes_.read(*pin);
  }
  const bool stays = std::ranges::any_of(strategy_.unsharded, [&](const std::string& paths) {
    return matches(paths, parameter_path(state));
  });
  const auto sharded = [&](const std::vector<std::string>& more) {
    return stays ? out.use : large_enough(with(out.use, more, type.shape), out.use, type);
  };
  out.gradient = sharded(strategy_.shard_moments);
  out.accumulator = sharded(strategy_.shard_gradients);
  const bool read = state.role == Role::Copy || state.role == Role::Reference ||
                    (state.role == Role::Parameter && !copied_.contains(state.path));
  const bool updated = state.role == Role::Moment || state.role == Role::Parameter;
  out.home = read ? sharded(strategy_.shard_parameters) : updated ? out.gradient : out.use;
  return out;
}

const Sharding* StatePlaces::find(std::string_view path) const {
  const Sharding* out = nullptr;
  for (const Pin& pin : strategy_.pins) {
    if (matches(pin.values, path)) out = &pin.sharding;
  }
  return out;
}

const Sharding* StatePlaces::pinned(const Node& node) const {
  return node.name.empty() ? nullptr : find(value_path(node));
}

/// Those of `more` along which the state is whole, on one dim: the first, behind the axes that cut
/// it, where all parts are equal, because each then moves in one piece; else the first free one
/// that they divide, else the first free one, else behind the axes of the first.
AxisPlacements StatePlaces::with(AxisPlacements on_axes, const std::vector<std::string>& more,
                                 const Shape& shape) const {
  std::int64_t ranks = 1;
  std::vector<std::size_t> axes;
  for (const std::string& name : more) {
    const int axis = axes_.find(name);
    if (axis < 0 || on_axes[static_cast<std::size_t>(axis)] != kWhole) continue;
    axes.push_back(static_cast<std::size_t>(axis));
    ranks *= axes_[axis].size;
  }
  if (shape.ndim() == 0 || ranks == 1) return on_axes;
  const std::size_t major = *std::ranges::min_element(axes);
  std::int64_t parts = ranks;  // of the first dim
  bool behind = true;          // what cuts it already is major to all of `axes`
  for (std::size_t axis = 0; axis < on_axes.size(); ++axis) {
    if (on_axes[axis] != 0) continue;
    parts *= axes_[static_cast<int>(axis)].size;
    behind = behind && axis < major;
  }
  int dim = behind && shape[0] % parts == 0 ? 0 : -1;
  for (const bool dividing : {true, false}) {
    for (int d = 0; d < shape.ndim() && dim < 0; ++d) {
      const bool free = std::find(on_axes.begin(), on_axes.end(), d) == on_axes.end();
      if (free && (!dividing || shape[d] % ranks == 0)) dim = d;
    }
  }
  for (const std::size_t axis : axes) on_axes[axis] = static_cast<AxisPlacement>(std::max(dim, 0));
  return on_axes;
}

/// `cut` where a rank then has as many bytes as the threshold asks for, `whole` where it has fewer.
AxisPlacements StatePlaces::large_enough(const AxisPlacements& cut, const AxisPlacements& whole,
                                         const TensorType& type) const {
  if (strategy_.shard_threshold == 0) return cut;
  const Sharding sharding = axes_.write(cut, type.ndim())->sharding;
  const Shape shard = local_shape(type.shape, sharding, strategy_.mesh);
  return shard.numel() * size_of(type.dtype) < strategy_.shard_threshold ? whole : cut;
}

AxisPlacements StatePlaces::batch(const Node& node) const {
  const TensorType& type = node.type();
  const std::string& name = std::get<std::string>(node.attrs[0]);
  if (const Sharding* pin = find(name)) {
    require_fits(*pin, "batch input", name, type.shape);
    return axes_.read(*pin);
  }
  Sharding sharding = Sharding::replicated(type.ndim());
  for (int d = 0; d < type.ndim() && d < static_cast<int>(strategy_.batch.size()); ++d)
    sharding.dims[static_cast<std::size_t>(d)] = strategy_.batch[static_cast<std::size_t>(d)];
  return axes_.read(sharding);
}

AxisPlacements StatePlaces::stored_batch(const Node& node) const {
  AxisPlacements out = batch(node);
  AxisPlacement in_time = kWhole;
  for (int a = 0; a < axes_.count(); ++a) {
    AxisPlacement& on_axis = out[static_cast<std::size_t>(a)];
    if (axes_.is_time(a)) in_time = std::exchange(on_axis, kWhole);
    if (in_time >= 0 && on_axis == in_time) on_axis = kWhole;
  }
  return out;
}

}  // namespace tessera
