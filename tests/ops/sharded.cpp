#include "ops/sharded.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "tessera/ops/collective.h"
#include "tessera/ops/expansion.h"
#include "tessera/ops/reference.h"

void tessera::PrintTo(const Mesh& mesh, std::ostream* out) { *out << to_text(mesh); }

namespace tessera::test {

namespace {

std::int64_t shards(const Axes& axes, const Mesh& mesh) {
  std::int64_t n = 1;
  for (const std::string& axis : axes) n *= mesh.size(axis);
  return n;
}

/// A compound dim may be sharded along a factor only if its axes divide it and every more-major
/// factor is sharded to the end.
bool is_legal(const Factors& factors, const Assignment& assignment, const Mesh& mesh) {
  const auto dims_legal = [&](const Factors::Dims& dims) {
    return std::all_of(dims.begin(), dims.end(), [&](const std::vector<int>& fs) {
      if (fs.size() < 2) return true;
      bool open = false;  // a more-major factor has elements left on each shard
      for (const int f : fs) {
        const auto found = assignment.find(f);
        const std::int64_t n = found == assignment.end() ? 1 : shards(found->second, mesh);
        const std::int64_t size = factors.list[static_cast<std::size_t>(f)].size;
        if (n > 1 && (open || size % n != 0)) return false;
        open = open || n < size;
      }
      return true;
    });
  };
  return std::all_of(factors.ins.begin(), factors.ins.end(), dims_legal) &&
         std::all_of(factors.outs.begin(), factors.outs.end(), dims_legal);
}

bool one_monoid(const Factors& factors, const Assignment& assignment) {
  for (int j = 0; j < static_cast<int>(factors.outs.size()); ++j) {
    std::vector<Monoid> seen;
    for (const auto& [f, axes] : assignment) {
      if (factors.reduces(f, j)) seen.push_back(combining(factors.monoid(f)));
    }
    if (std::any_of(seen.begin(), seen.end(), [&](Monoid m) { return m != seen[0]; })) return false;
  }
  return true;
}

Result local_result(const TensorType& type, Sharding sharding, const Mesh& mesh) {
  TensorType local = type;
  local.shape = local_shape(type.shape, sharding, mesh);
  return {local, Placement{std::move(sharding), Memory::Device}, type.shape};
}

/// Visits the elements of a shard: f(local index, index in the whole, or -1 beyond its extent).
template <typename F>
void each_element(const Result& result, const Mesh& mesh, const Coordinates& at, F&& f) {
  std::vector<Extent> parts;
  for (int d = 0; d < result.logical.ndim(); ++d) {
    const Axes& axes = result.placement->sharding.dims[static_cast<std::size_t>(d)];
    parts.push_back(extent(result.logical[d], axes, mesh, at));
  }
  const Shape &local = result.type.shape, strides = result.logical.strides();
  for (std::int64_t i = 0; i < local.numel(); ++i) {
    std::int64_t rest = i, whole = 0;
    for (int d = local.ndim() - 1; d >= 0; --d) {
      const std::int64_t k = rest % local[d];
      rest /= local[d];
      const Extent& part = parts[static_cast<std::size_t>(d)];
      whole = whole < 0 || k >= part.valid ? -1 : whole + (part.start + k) * strides[d];
    }
    f(i, whole);
  }
}

/// `reduction`: what lies beyond the extent is its identity, as partition sees to.
HostTensor cut(const HostTensor& whole, const Result& result, const Mesh& mesh,
               const Coordinates& at, double garbage, std::optional<Monoid> reduction) {
  TensorType type = result.type;
  type.dtype = whole.dtype();
  HostTensor out(type);
  double beyond = is_float(type.dtype) ? std::numeric_limits<double>::quiet_NaN() : garbage;
  if (reduction) {
    with_element(type.dtype, [&](auto zero) {
      beyond = static_cast<double>(identity_of<decltype(zero)>(*reduction));
    });
  }
  each_element(result, mesh, at, [&](std::int64_t i, std::int64_t from) {
    out.set(i, from < 0 ? beyond : whole.at(from));
  });
  return out;
}

std::vector<Coordinates> ranks_of(const Mesh& mesh) {
  std::vector<Coordinates> out = {{}};
  for (const Axis& axis : mesh.axes()) {
    std::vector<Coordinates> more;
    for (const Coordinates& rank : out) {
      for (std::int64_t i = 0; i < axis.size; ++i) {
        more.push_back(rank);
        more.back()[axis.name] = i;
      }
    }
    out = std::move(more);
  }
  return out;
}

/// One op on the ranks of a mesh.
class Ranks {
 public:
  Ranks(const Graph& graph, NodeId node, const Mesh& mesh, const Assignment& assignment,
        const RunNode& run_node)
      : mesh_(mesh), run_node_(run_node) {
    const Factors factors = graph.factors(node);
    const Node& whole = graph.node(node);
    for (std::size_t i = 0; i < whole.inputs.size(); ++i) {
      in_.push_back(
          local_result(graph.type(whole.inputs[i]), sharding_of(factors.ins[i], assignment), mesh));
      padding_.push_back(reduction_of_padding(*whole.op, factors, static_cast<int>(i),
                                              padded_dims(in_.back(), mesh)));
    }
    for (std::size_t j = 0; j < whole.results.size(); ++j) {
      Sharding sharding = sharding_of(factors.outs[j], assignment);
      for (const auto& [f, axes] : assignment) {
        if (!factors.reduces(f, static_cast<int>(j))) continue;
        for (const std::string& axis : axes)
          sharding = sharding.with_partial(axis, factors.monoid(f));
      }
      out_.push_back(local_result(whole.results[j].type, std::move(sharding), mesh));
    }
    for (const Axis& axis : mesh.axes()) {
      const bool used = std::any_of(assignment.begin(), assignment.end(), [&](const auto& entry) {
        return std::find(entry.second.begin(), entry.second.end(), axis.name) != entry.second.end();
      });
      if (!used) idle_.push_back(axis.name);
    }
    Builder builder(Form::Local, mesh_);
    ValueIds operands;
    for (std::size_t i = 0; i < in_.size(); ++i)
      operands.push_back(builder.slot(text("in", i), in_[i]).id());
    Node local = whole;
    local.results = out_;
    local.like = local.remat_of = -1;
    local.cotangent.reset();
    const std::vector<Value> results = builder.copy(std::move(local), operands);
    for (std::size_t j = 0; j < results.size(); ++j)
      builder.output(Output::Kind::Metric, text("out", j), results[j]);
    local_ = builder.finish();
  }

  Tensors run(const Tensors& ins, double garbage) const {
    std::map<Coordinates, Tensors> computed;
    Tensors out;
    std::vector<std::vector<bool>> seen;
    for (const Coordinates& at : ranks_of(mesh_)) {
      Tensors got = run_one(ins, at, garbage);
      if (out.empty()) {
        for (std::size_t j = 0; j < got.size(); ++j) {
          out.emplace_back(got[j].dtype(), out_[j].logical);
          seen.emplace_back(static_cast<std::size_t>(out[j].numel()), false);
        }
      }
      Coordinates first = at;  // the rank that does the same, and is counted
      for (const std::string& axis : idle_) first[axis] = 0;
      for (std::size_t j = 0; j < got.size(); ++j) {
        if (first == at) {
          add(got[j], j, at, out[j], seen[j]);
        } else {
          expect_replica(got[j], computed.at(first)[j], j, at);
        }
      }
      computed.emplace(at, std::move(got));
    }
    for (std::size_t j = 0; j < seen.size(); ++j) {
      EXPECT_EQ(std::count(seen[j].begin(), seen[j].end(), false), 0)
          << "elements of result " << j << " lie on no rank";
    }
    return out;
  }

 private:
  Tensors run_one(const Tensors& ins, const Coordinates& at, double garbage) const {
    Tensors shards;
    for (std::size_t i = 0; i < in_.size(); ++i)
      shards.push_back(cut(ins[i], in_[i], mesh_, at, garbage, padding_[i]));
    if (run_node_) return run_node_(local_, local_.size() - 1, shards, at);
    Bindings inputs;
    for (std::size_t i = 0; i < in_.size(); ++i) inputs.slots.emplace(text("in", i), shards[i]);
    return test::run(local_, inputs, at);
  }

  void add(const HostTensor& got, std::size_t j, const Coordinates& at, HostTensor& out,
           std::vector<bool>& seen) const {
    const std::vector<Partial>& partial = out_[j].placement->sharding.partial;
    each_element(out_[j], mesh_, at, [&](std::int64_t i, std::int64_t whole) {
      if (whole < 0) return;
      const double value = got.at(i);
      const bool first = !seen[static_cast<std::size_t>(whole)];
      seen[static_cast<std::size_t>(whole)] = true;
      if (first) {
        out.set(whole, value);
      } else {
        ASSERT_FALSE(partial.empty()) << "result " << j << ": two ranks hold element " << whole;
        out.set(whole, combine(partial[0].monoid, out.at(whole), value));
      }
    });
  }

  void expect_replica(const HostTensor& got, const HostTensor& want, std::size_t j,
                      const Coordinates& at) const {
    each_element(out_[j], mesh_, at, [&](std::int64_t i, std::int64_t whole) {
      if (whole < 0 || is_near(got.at(i), want.at(i), 0, 0)) return;
      ADD_FAILURE() << "result " << j << ", element " << whole
                    << " differs between replicas: " << got.at(i) << " and " << want.at(i);
    });
  }

  Mesh mesh_;
  const RunNode& run_node_;
  std::vector<Result> in_, out_;
  std::vector<std::optional<Monoid>> padding_;  // of operands that the op reduces
  Axes idle_;                                   // axes that shard nothing
  Graph local_;
};

}  // namespace

bool is_admitted(const Factors& factors, const Assignment& assignment, const Mesh& mesh) {
  const bool whole = std::any_of(assignment.begin(), assignment.end(), [&](const auto& entry) {
    const FactorKind kind = factors.list[static_cast<std::size_t>(entry.first)].kind;
    return kind == FactorKind::Whole;
  });
  return !whole && is_legal(factors, assignment, mesh) && one_monoid(factors, assignment);
}

std::vector<Assignment> admitted(const Factors& factors, const Mesh& mesh) {
  std::vector<Assignment> out = {{}};
  for (const Axis& axis : mesh.axes()) {
    std::vector<Assignment> more = out;  // those in which this axis shards nothing
    for (const Assignment& one : out) {
      for (int f = 0; f < static_cast<int>(factors.list.size()); ++f) {
        const auto found = one.find(f);
        const std::size_t before = found == one.end() ? 0 : found->second.size();
        for (std::size_t at = 0; at <= before; ++at) {
          if (at < before && mesh.size(found->second[at]) == axis.size) continue;
          more.push_back(one);
          Axes& axes = more.back()[f];
          axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(at), axis.name);
        }
      }
    }
    out = std::move(more);
  }
  std::erase_if(out, [&](const Assignment& one) { return !is_admitted(factors, one, mesh); });
  return out;
}

bool needs_expansion(const Factors& factors, const Assignment& assignment) {
  return std::any_of(assignment.begin(), assignment.end(), [&](const auto& entry) {
    const FactorKind kind = factors.list[static_cast<std::size_t>(entry.first)].kind;
    return kind == FactorKind::Stat;
  });
}

bool is_uneven(const Factors& factors, const Assignment& assignment, const Mesh& mesh) {
  return std::any_of(assignment.begin(), assignment.end(), [&](const auto& entry) {
    return factors.list[static_cast<std::size_t>(entry.first)].size % shards(entry.second, mesh) !=
           0;
  });
}

bool shards_nothing(const Factors& factors, const Assignment& assignment) {
  return std::any_of(assignment.begin(), assignment.end(), [&](const auto& entry) {
    return factors.list[static_cast<std::size_t>(entry.first)].size == 1;
  });
}

Sharding sharding_of(const Factors::Dims& dims, const Assignment& assignment) {
  Sharding out = Sharding::replicated(static_cast<int>(dims.size()));
  for (std::size_t d = 0; d < dims.size(); ++d) {
    for (const int f : dims[d]) {
      const auto found = assignment.find(f);
      if (found != assignment.end())
        out.dims[d].insert(out.dims[d].end(), found->second.begin(), found->second.end());
    }
  }
  return out;
}

std::string describe(const Factors& factors, const Assignment& assignment, const Mesh& mesh) {
  std::vector<std::string> words;
  for (const auto& [f, axes] : assignment)
    words.push_back(text(factors.list[static_cast<std::size_t>(f)].name, " on ", join(axes, ".")));
  return text(words.empty() ? "replicated" : join(words), " of ", mesh);
}

std::vector<Mesh> test_meshes() {
  return {Mesh({{"a", 2}}), Mesh({{"a", 3}}), Mesh({{"a", 2}, {"b", 2}}),
          Mesh({{"a", 2}, {"b", 3}}), Mesh({{"a", 2}, {"b", 2}, {"c", 2}})};
}

std::string mesh_name(const Mesh& mesh) {
  std::string out;
  for (const Axis& axis : mesh.axes()) out += text(out.empty() ? "Of" : "x", axis.size);
  return out;
}

std::vector<Mesh> meshes_of_compound_dims(const Factors& factors) {
  std::set<std::int64_t> sizes;
  const auto collect = [&](const std::vector<Factors::Dims>& values) {
    for (const Factors::Dims& dims : values) {
      for (const std::vector<int>& fs : dims) {
        for (std::size_t i = 0; i + 1 < fs.size(); ++i)
          sizes.insert(factors.list[static_cast<std::size_t>(fs[i])].size);
      }
    }
  };
  collect(factors.ins);
  collect(factors.outs);
  sizes.erase(1);
  std::vector<Mesh> out;
  for (const std::int64_t size : sizes) out.push_back(Mesh({{"a", size}, {"b", 2}}));
  return out;
}

Subject subject_of(const Case& c) {
  Builder builder;
  const NodeId node = use(builder, c).outs[0].id().node;
  Subject out{title(c), std::make_shared<const Graph>(builder.finish()), node, operands(c), {}};
  out.outs = results(c, out.ins);
  return out;
}

Subject subject_of(std::string title, const Graph& graph, NodeId id, Tensors ins, Tensors outs) {
  Builder builder;
  std::vector<Value> values;
  const Node& node = graph.node(id);
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    values.push_back(builder.batch(text("in", i), graph.type(node.inputs[i])));
  const NodeId at = builder.so_far().size();
  Node alone = node;
  alone.like = alone.remat_of = -1;
  alone.cotangent.reset();
  alone.where = {};
  ValueIds ids;
  for (const Value& value : values) ids.push_back(value.id());
  builder.copy(std::move(alone), ids);
  return {std::move(title), std::make_shared<const Graph>(builder.finish()), at, std::move(ins),
          std::move(outs)};
}

Tensors run_on_ranks(const Graph& graph, NodeId node, const Tensors& ins, const Mesh& mesh,
                     const Assignment& assignment, double garbage, const RunNode& run_node) {
  return Ranks(graph, node, mesh, assignment, run_node).run(ins, garbage);
}

bool has_integers(const Tensors& ins) {
  return std::any_of(ins.begin(), ins.end(), [](const HostTensor& in) {
    return !is_float(in.dtype()) && in.shape().ndim() > 0;
  });
}

bool has_failed() { return ::testing::Test::HasFailure(); }

}  // namespace tessera::test
