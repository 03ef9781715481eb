#include "tessera/shard/local.h"

#include <algorithm>
#include <numeric>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/shard/shard.h"

namespace tessera {

namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// The permutation that takes dim `from` to place `to`.
std::vector<std::int64_t> moving(int ndim, int from, int to) {
  std::vector<std::int64_t> out(at(ndim));
  std::iota(out.begin(), out.end(), 0);
  out.erase(out.begin() + from);
  out.insert(out.begin() + to, from);
  return out;
}

Value moved(Value x, int from, int to) {
  return from == to ? x : transpose(x, moving(x.ndim(), from, to));
}

/// Dims `dim` and `dim` + 1 as one.
Value merged(Value x, int dim) {
  Shape shape;
  for (int d = 0; d < x.ndim(); ++d) {
    if (d == dim + 1) {
      shape[dim] *= x.shape()[d];
    } else {
      shape.push_back(x.shape()[d]);
    }
  }
  return reshape(x, shape);
}

Value with_one(Value x, int dim) {
  Shape shape;
  for (int d = 0; d <= x.ndim(); ++d) {
    if (d == dim) shape.push_back(1);
    if (d < x.ndim()) shape.push_back(x.shape()[d]);
  }
  return reshape(x, shape);
}

Value repeated(Value x, int dim, std::int64_t times) {
  Shape shape = x.shape();
  shape[dim] = times;
  return broadcast_to(x, shape);
}

}  // namespace

LocalRanks::LocalRanks(DeviceLayout layout, DeviceMatrix sizes, std::vector<std::string> axes)
    : layout_(std::move(layout)), sizes_(std::move(sizes)), axes_(std::move(axes)) {}

std::int64_t LocalRanks::size(std::string_view axis) const { return sizes_[at(index(axis))]; }

int LocalRanks::index(std::string_view axis) const {
  const auto found = std::find(axes_.begin(), axes_.end(), axis);
  require(found != axes_.end(), "local: there is no axis '", axis, "'; the layout has ",
          join(axes_));
  return static_cast<int>(found - axes_.begin());
}

int LocalRanks::dim_of(Value x, int dim) const {
  const int out = dim < 0 ? x.ndim() + dim : lead() + dim;
  require(out >= lead() && out < x.ndim(), "local: there is no dim ", dim,
          " in what a rank holds of ", x.type(), ", whose first ", lead(), " dims are axes");
  return out;
}

/// Each rank holds its part: pinned, so that nothing else is found.
Value LocalRanks::lie(Value x) const {
  std::vector<DeviceLayout::Dim> dims;
  for (int d = 0; d < x.ndim(); ++d) dims.push_back(d < lead() ? axes_[at(d)].c_str() : "None");
  return shard(identity(x), std::vector<TensorLayout>{layout_.of(dims)});
}

Value LocalRanks::split(Value x, int dim, std::int64_t parts) const {
  const std::int64_t size = x.shape()[dim];
  require(size % parts == 0, "local: dim ", dim - lead(), " of size ", size, " cannot be cut in ",
          parts, " parts; choose a size that ", parts, " divides");
  Shape shape;
  for (int d = 0; d < x.ndim(); ++d) {
    if (d == dim) shape.push_back(parts);
    shape.push_back(d == dim ? size / parts : x.shape()[d]);
  }
  return reshape(x, shape);
}

/// What is the same on all ranks of an axis, of size 1 there.
Value LocalRanks::first_of(Value x, int axis) const {
  return x.shape()[axis] == 1 ? x : slice(x, axis, 0, 1);
}

Value LocalRanks::all_reduce(Value x, std::string_view axis) const {
  const int i = index(axis);
  return lie(repeated(sum(x, i, KeepDim::Yes), i, sizes_[at(i)]));
}

Value LocalRanks::all_gather(Value x, std::string_view axis, int dim) const {
  const int i = index(axis), d = dim_of(x, dim);
  const Value joined = merged(moved(x, i, d - 1), d - 1);
  return lie(repeated(with_one(joined, i), i, sizes_[at(i)]));
}

Value LocalRanks::reduce_scatter(Value x, std::string_view axis, int dim) const {
  const int i = index(axis), d = dim_of(x, dim);
  return lie(moved(sum(split(x, d, sizes_[at(i)]), std::vector<std::int64_t>{i}), d - 1, i));
}

Value LocalRanks::all_to_all(Value x, std::string_view axis, int gather, int scatter) const {
  const int i = index(axis), from = dim_of(x, gather), to = dim_of(x, scatter);
  require(from != to, "local: all_to_all joins and cuts dim ", gather, "; name two dims");
  // The pieces of `to` become the axis, the axis the major part of `from`.
  const Value pieces = moved(split(x, to, sizes_[at(i)]), to, 0);
  const Value joined = merged(moved(pieces, i + 1, from), from);
  return lie(moved(joined, 0, i));
}

Value LocalRanks::broadcast(Value x, std::string_view axis, std::int64_t root) const {
  const int i = index(axis);
  require(root >= 0 && root < sizes_[at(i)], "local: axis '", axis, "' has ", sizes_[at(i)],
          " ranks, so none is number ", root);
  return lie(repeated(slice(x, i, root, 1), i, sizes_[at(i)]));
}

Value LocalRanks::scatter_in(Value whole, const TensorLayout& layout) const {
  const Shape part = layout.slice_shape(whole.shape());
  // [parts of dim 0..., its rest, parts of dim 1..., ...], then axes first; those unused are 1.
  Shape cut;
  std::vector<std::int64_t> place(at(lead()), -1), rest;
  for (int d = 0; d < whole.ndim(); ++d) {
    for (const int m : layout.map[at(d)]) {
      const int axis = lead() - 1 - m;
      place[at(axis)] = cut.ndim();
      cut.push_back(sizes_[at(axis)]);
    }
    rest.push_back(cut.ndim());
    cut.push_back(part[d]);
  }
  for (std::int64_t& dim : place) {
    if (dim >= 0) continue;
    dim = cut.ndim();
    cut.push_back(1);
  }
  Value x = reshape(whole, cut);
  place.insert(place.end(), rest.begin(), rest.end());
  x = transpose(x, place);
  Shape full(std::vector<std::int64_t>(sizes_.begin(), sizes_.end()));
  for (const std::int64_t size : part) full.push_back(size);
  return lie(broadcast_to(x, full));
}

Value LocalRanks::gather_out(Value x, const TensorLayout& layout) const {
  require(x.ndim() == lead() + static_cast<int>(layout.map.size()), "local: a result is ", x.type(),
          ", which has ", x.ndim() - lead(), " dims behind its ", lead(),
          " axes, but its layout has ", layout.map.size());
  for (const int m : layout.repeated()) x = first_of(x, lead() - 1 - m);
  std::vector<std::int64_t> order;
  Shape whole;
  for (std::size_t d = 0; d < layout.map.size(); ++d) {
    std::int64_t size = x.shape()[lead() + static_cast<int>(d)];
    for (const int m : layout.map[d]) {
      order.push_back(lead() - 1 - m);
      size *= sizes_[sizes_.size() - 1 - at(m)];
    }
    order.push_back(lead() + static_cast<int>(d));
    whole.push_back(size);
  }
  for (const int m : layout.repeated()) order.push_back(lead() - 1 - m);
  return reshape(transpose(x, order), whole);
}

std::vector<Value> local(const LocalBody& body, const std::vector<Value>& inputs,
                         const std::vector<TensorLayout>& ins,
                         const std::vector<TensorLayout>& outs) {
  require(!ins.empty() && ins.size() == inputs.size(), "local: ", inputs.size(), " inputs, but ",
          ins.size(), " layouts; give each input one");
  const auto same = [&](const TensorLayout& layout) {
    require(layout.matrix == ins[0].matrix && layout.aliases == ins[0].aliases,
            "local: layouts on two matrices, ", ins[0], " and ", layout, "; use one");
  };
  std::for_each(ins.begin(), ins.end(), same);
  std::for_each(outs.begin(), outs.end(), same);
  const LocalRanks ranks(DeviceLayout(ins[0].matrix, ins[0].aliases), ins[0].matrix,
                         ins[0].aliases);
  std::vector<Value> parts, out;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    parts.push_back(ranks.scatter_in(inputs[i], ins[i]));
  const std::vector<Value> results = body(ranks, parts);
  require(results.size() == outs.size(), "local: the body returns ", results.size(),
          " values, but ", outs.size(), " layouts are given");
  for (std::size_t i = 0; i < outs.size(); ++i)
    out.push_back(ranks.gather_out(results[i], outs[i]));
  return out;
}

}  // namespace tessera
