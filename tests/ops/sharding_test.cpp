/// Factor rules at work: the op on shards that the rule allows gives what the op on whole tensors
/// gives.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "ops/harness.h"

namespace tessera::test {

namespace {

using Axes = std::vector<std::string>;

/// Which axes shard each factor, major first.
using Assignment = std::map<int, Axes>;

bool reducible(const Factor& factor) {
  return factor.kind == FactorKind::Pass || factor.kind == FactorKind::Max ||
         factor.kind == FactorKind::Min;
}

std::int64_t shards(const Axes& axes, const Mesh& mesh) {
  std::int64_t n = 1;
  for (const std::string& axis : axes) n *= mesh.size(axis);
  return n;
}

/// A compound dim may be sharded along a factor only if its axes divide it and every more-major
/// factor is sharded to the end: else a shard would not be one run of the dim.
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

Result local_result(const TensorType& type, Sharding sharding, const Mesh& mesh) {
  TensorType local = type;
  local.shape = local_shape(type.shape, sharding, mesh);
  return {local, Placement{std::move(sharding), Memory::Device}, type.shape};
}

/// One rank's part of a dim each, by the shape of the whole.
std::vector<Extent> extents(const Result& result, const Mesh& mesh, const Coordinates& at) {
  std::vector<Extent> out;
  for (int d = 0; d < result.logical.ndim(); ++d) {
    const Axes& axes = result.placement->sharding.dims[static_cast<std::size_t>(d)];
    out.push_back(extent(result.logical[d], axes, mesh, at));
  }
  return out;
}

/// Visits the elements of a shard: f(local index, index in the whole, or -1 beyond its extent).
template <typename F>
void each_element(const Result& result, const Mesh& mesh, const Coordinates& at, F&& f) {
  const std::vector<Extent> parts = extents(result, mesh, at);
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

HostTensor cut(const HostTensor& whole, const Result& result, const Mesh& mesh,
               const Coordinates& at, double garbage) {
  TensorType type = result.type;
  type.dtype = whole.dtype();
  HostTensor out(type);
  const double beyond = is_float(type.dtype) ? std::numeric_limits<double>::quiet_NaN() : garbage;
  each_element(result, mesh, at, [&](std::int64_t i, std::int64_t from) {
    out.set(i, from < 0 ? beyond : whole.at(from));
  });
  return out;
}

double combined(Monoid monoid, double a, double b) {
  switch (monoid) {
    case Monoid::Max:
      return std::max(a, b);
    case Monoid::Min:
      return std::min(a, b);
    default:
      return a + b;
  }
}

/// One row on one mesh, sharded in one way.
class Sharded {
 public:
  Sharded(const Case& c, const Tensors& ins, const Tensors& want, const Graph& whole, NodeId node,
          const Mesh& mesh, const Assignment& assignment)
      : ins_(ins), want_(want), mesh_(mesh) {
    const Factors factors = whole.factors(node);
    for (std::size_t i = 0; i < ins.size(); ++i) {
      in_.push_back(local_result(c.ins[i].type, sharding_of(factors.ins[i], assignment), mesh));
    }
    for (std::size_t j = 0; j < want.size(); ++j) {
      Sharding sharding = sharding_of(factors.outs[j], assignment);
      for (const auto& [f, axes] : assignment) {
        if (!factors.reduces(f, static_cast<int>(j))) continue;
        for (const std::string& axis : axes)
          sharding = sharding.with_partial(axis, factors.monoid(f));
      }
      out_.push_back(local_result(whole.node(node).results[j].type, std::move(sharding), mesh));
    }
    node_.op = c.op;
    node_.attrs = c.attrs;
    node_.results = out_;
    for (std::size_t j = 0; j < want.size(); ++j) {
      total_.push_back(want[j].cast(DType::F64));
      seen_.emplace_back(static_cast<std::size_t>(want[j].numel()), 0);
    }
  }

  /// Runs every rank and compares what the ranks' results combine to.
  void run_all(double garbage) {
    std::vector<Coordinates> ranks = {{}};
    for (const Axis& axis : mesh_.axes()) {
      std::vector<Coordinates> more;
      for (const Coordinates& rank : ranks) {
        for (std::int64_t i = 0; i < axis.size; ++i) {
          more.push_back(rank);
          more.back()[axis.name] = i;
        }
      }
      ranks = std::move(more);
    }
    for (const Coordinates& at : ranks) take(at, run_one(at, garbage));
    for (std::size_t j = 0; j < want_.size(); ++j) {
      const bool is_partial = !out_[j].placement->sharding.partial.empty();
      for (const int seen : seen_[j])
        EXPECT_GT(seen, 0) << "an element of result " << j << " lies on no rank";
      if (is_partial)
        expect_near(total_[j], want_[j].cast(DType::F64), 1e-10, 1e-10,
                    text("combined result ", j));
    }
  }

 private:
  Tensors run_one(const Coordinates& at, double garbage) const {
    Builder builder(Form::Local, mesh_);
    Bindings inputs;
    ValueIds operands;
    for (std::size_t i = 0; i < ins_.size(); ++i) {
      operands.push_back(builder.slot(text("in", i), in_[i]).id());
      inputs.slots.emplace(text("in", i), cut(ins_[i], in_[i], mesh_, at, garbage));
    }
    const std::vector<Value> results = builder.copy(node_, operands);
    for (std::size_t j = 0; j < results.size(); ++j) {
      builder.output(Output::Kind::Metric, text("out", j), results[j]);
    }
    return run(builder.finish(), inputs, at);
  }

  /// Partial elements are added up; others are compared at once.
  void take(const Coordinates& at, const Tensors& got) {
    for (std::size_t j = 0; j < got.size(); ++j) {
      const std::vector<Partial>& partial = out_[j].placement->sharding.partial;
      int wrong = 0;
      each_element(out_[j], mesh_, at, [&](std::int64_t i, std::int64_t whole) {
        if (whole < 0) return;
        const bool first = seen_[j][static_cast<std::size_t>(whole)]++ == 0;
        const double value = got[j].at(i);
        if (!partial.empty()) {
          total_[j].set(whole,
                        first ? value : combined(partial[0].monoid, total_[j].at(whole), value));
        } else if (!is_near(value, want_[j].at(whole), 1e-10, 1e-10) && ++wrong <= 2) {
          ADD_FAILURE() << "result " << j << ", element " << whole << " is " << value << ", not "
                        << want_[j].at(whole);
        }
      });
    }
  }

  const Tensors &ins_, &want_;
  Mesh mesh_;
  std::vector<Result> in_, out_;
  Node node_;
  Tensors total_;
  std::vector<std::vector<int>> seen_;
};

struct Layout {
  Mesh mesh;
  Assignment assignment;
};

/// Every factor alone on 2, 3 and nested 2 x 2 ranks; every two factors on 2 x 3; minor factors of
/// compound dims under their fully sharded majors.
std::vector<Layout> layouts(const Factors& factors) {
  std::vector<Layout> out;
  const int n = static_cast<int>(factors.list.size());
  const auto usable = [&](int f) {
    const Factor& factor = factors.list[static_cast<std::size_t>(f)];
    return reducible(factor) && factor.size > 1;
  };
  for (int f = 0; f < n; ++f) {
    if (!usable(f)) continue;
    out.push_back({Mesh({{"a", 2}}), {{f, {"a"}}}});
    out.push_back({Mesh({{"a", 3}}), {{f, {"a"}}}});
    out.push_back({Mesh({{"a", 2}, {"b", 2}}), {{f, {"a", "b"}}}});
    for (int g = 0; g < n; ++g) {
      if (g == f || !usable(g)) continue;
      out.push_back({Mesh({{"a", 2}, {"b", 3}}), {{f, {"a"}}, {g, {"b"}}}});
      const std::int64_t whole = factors.list[static_cast<std::size_t>(f)].size;
      out.push_back({Mesh({{"a", whole}, {"b", 2}}), {{f, {"a"}}, {g, {"b"}}}});
    }
  }
  return out;
}

/// Two reductions of different kinds do not commute: such layouts are not made.
bool one_monoid(const Factors& factors, const Assignment& assignment) {
  for (int j = 0; j < static_cast<int>(factors.outs.size()); ++j) {
    std::vector<Monoid> seen;
    for (const auto& [f, axes] : assignment) {
      if (factors.reduces(f, j)) seen.push_back(factors.monoid(f));
    }
    if (std::any_of(seen.begin(), seen.end(), [&](Monoid m) { return m != seen[0]; })) return false;
  }
  return true;
}

bool has_integers(const Case& c) {
  return std::any_of(c.ins.begin(), c.ins.end(),
                     [](const Operand& o) { return !is_float(o.type.dtype) && o.type.ndim() > 0; });
}

}  // namespace

TEST(FactorRules, ShardsGiveTheWhole) {
  int checked = 0;
  for (const Case& c : all_cases()) {
    Builder builder;
    const NodeId node = use(builder, c).outs[0].id().node;
    const Graph whole = builder.finish();
    const Factors factors = whole.factors(node);
    const Tensors ins = operands(c), want = results(c, ins);
    for (const auto& [mesh, assignment] : layouts(factors)) {
      if (!is_legal(factors, assignment, mesh) || !one_monoid(factors, assignment)) continue;
      std::string how;
      for (const auto& [f, axes] : assignment) {
        how += text(" ", factors.list[static_cast<std::size_t>(f)].name, " on ", join(axes, "."));
      }
      SCOPED_TRACE(text(title(c), " | ", factors, " |", how, " of ", mesh));
      ++checked;
      // Integers beyond the extent may name something or nothing.
      Sharded(c, ins, want, whole, node, mesh, assignment).run_all(-999);
      if (has_integers(c)) Sharded(c, ins, want, whole, node, mesh, assignment).run_all(1);
      if (::testing::Test::HasFailure()) break;
    }
  }
  RecordProperty("layouts", checked);
  EXPECT_GT(checked, 500);
}

/// An operand that its rule calls linear may be a sum of addends: the results are then addends of
/// the result.
TEST(FactorRules, LinearOperandsMayBePartial) {
  int checked = 0;
  for (const Case& c : all_cases()) {
    Builder builder;
    const NodeId node = use(builder, c).outs[0].id().node;
    const Factors factors = builder.so_far().factors(node);
    if (factors.linear == Linear::None) continue;
    SCOPED_TRACE(text(title(c), " | ", factors));
    const Tensors ins = operands(c), want = results(c, ins);
    // joint: all linear operands are split together; each: one at a time.
    std::vector<std::vector<int>> splits;
    if (factors.linear == Linear::Joint)
      splits.push_back(factors.linear_operands);
    else
      for (const int i : factors.linear_operands) splits.push_back({i});
    for (const std::vector<int>& split : splits) {
      Tensors left = ins, right = ins;
      for (const int i : split) {
        const auto at = static_cast<std::size_t>(i);
        left[at] = ins[at].clone(), right[at] = ins[at].clone();
        const HostTensor part = filled(c.ins[at].type.dtype == DType::F32
                                           ? normal(ins[at].shape())
                                           : ids(ins[at].shape(), -5, 5, ins[at].dtype()),
                                       77 + at);
        for (std::int64_t k = 0; k < ins[at].numel(); ++k) {
          left[at].set(k, part.at(k));
          right[at].set(k, ins[at].at(k) - part.at(k));
        }
      }
      const bool splittable = std::none_of(split.begin(), split.end(), [&](int i) {
        return ins[static_cast<std::size_t>(i)].dtype() == DType::Bool;
      });
      if (!splittable) continue;
      ++checked;
      const Tensors a = results(c, left), b = results(c, right);
      for (std::size_t j = 0; j < want.size(); ++j) {
        HostTensor sum(DType::F64, want[j].shape());
        for (std::int64_t k = 0; k < sum.numel(); ++k) sum.set(k, a[j].at(k) + b[j].at(k));
        expect_near(sum, want[j].cast(DType::F64), 1e-10, 1e-10,
                    text("result ", j, " of partial operand ", split[0]));
      }
    }
  }
  RecordProperty("operands", checked);
  EXPECT_GT(checked, 50);
}

}  // namespace tessera::test
