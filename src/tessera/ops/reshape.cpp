#include <algorithm>
#include <cstring>
#include <numeric>

#include "tessera/ops/reference.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

namespace {

constexpr std::string_view kGathersName = "gathers";

using Ints = std::vector<std::int64_t>;

/// For each dim, the product of the sizes up to it.
Ints products(const Shape& shape) {
  Ints out;
  std::int64_t product = 1;
  for (const std::int64_t size : shape) out.push_back(product *= size);
  return out;
}

/// True where a factor may end at product `cut`: no dim of `shape` is cut into pieces of unequal
/// meaning.
bool divides(std::int64_t cut, const Ints& products) {
  std::int64_t before = 1;
  for (const std::int64_t after : products) {
    if (before < cut && cut < after) return cut % before == 0 && after % cut == 0;
    before = after;
  }
  return true;
}

/// A factor ends wherever a dim of either side ends, as long as both sides can be cut there. Behind
/// the first place where they cannot (6x4 -> 4x6 after 2), the rest must be whole.
Factors reshape_factors(const OpCall& c) {
  Factors out;
  out.linear = Linear::Each;
  out.linear_operands = {0};
  const Ints in = products(c.in(0).shape), result = products(c.out(0).shape);
  Ints all = in, cuts = {1};
  all.insert(all.end(), result.begin(), result.end());
  for (const std::int64_t a : in) {
    for (const std::int64_t b : result) all.push_back(std::gcd(a, b));
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  const std::int64_t numel = c.in(0).numel();
  for (const std::int64_t cut : all) {
    if (cut == 1) continue;
    if (numel == 0 || cut % cuts.back() != 0 || !divides(cut, in) || !divides(cut, result)) break;
    out.list.push_back({text("r", out.list.size()), cut / cuts.back(), FactorKind::Pass});
    cuts.push_back(cut);
  }
  const auto dims = [&](const Ints& ends) {
    Factors::Dims all_dims;
    std::int64_t before = 1;
    for (const std::int64_t after : ends) {
      all_dims.emplace_back();
      std::int64_t covered = before;
      for (std::size_t i = 1; i < cuts.size(); ++i) {
        if (cuts[i] <= before || cuts[i] > after) continue;
        all_dims.back().push_back(static_cast<int>(i) - 1);
        covered = cuts[i];
      }
      if (covered < after || (numel == 0 && after != before)) {
        const std::int64_t size = numel == 0 ? 0 : after / covered;
        all_dims.back().push_back(static_cast<int>(out.list.size()));
        out.list.push_back({text("r", out.list.size()), size, FactorKind::Whole});
      }
      before = after;
    }
    return all_dims;
  };
  out.ins.push_back(dims(in));
  out.outs.push_back(dims(result));
  return out;
}

/// The strides of a reshaped value without moving elements, if there are any: each group of operand
/// dims that meets a group of result dims must lie as one run.
std::optional<View> reshape_view(const OpCall& c, const Shape& strides) {
  const Shape &from = c.in(0).shape, &to = c.out(0).shape;
  View out{0, to.strides()};
  if (to.numel() <= 1) return out;
  // Operand dims of size 1 do not matter; neighbours that lie as one run are joined.
  struct Run {
    std::int64_t size, stride;
  };
  std::vector<Run> runs;
  for (int d = 0; d < from.ndim(); ++d) {
    if (from[d] == 1) continue;
    if (!runs.empty() && runs.back().stride == from[d] * strides[d]) {
      runs.back() = {runs.back().size * from[d], strides[d]};
    } else {
      runs.push_back({from[d], strides[d]});
    }
  }
  // From the last dim on, each result dim takes its share of the innermost run that is left.
  std::int64_t taken = 1;
  for (int d = to.ndim() - 1; d >= 0; --d) {
    if (to[d] == 1) continue;
    while (taken == runs.back().size) runs.pop_back(), taken = 1;
    if (runs.back().size % (taken * to[d]) != 0) return std::nullopt;
    out.strides[d] = runs.back().stride * taken;
    taken *= to[d];
  }
  return out;
}

void reshape_reference(RefCall& c) {
  std::memmove(c.outs[0].data, c.ins[0].data, static_cast<std::size_t>(c.outs[0].type.bytes()));
}

}  // namespace

constinit const OpDef kReshape = {
    .name = "reshape",
    .doc = "the same elements in row-major order under another shape",
    .attrs = {kShapeOfResult, {.name = kGathersName, .kind = AttrKind::Bool, .optional = true}},
    .infer = [](const OpCall& c) -> TensorTypes {
      const Shape shape(c.integers("shape"));
      require(shape.numel() == c.in(0).numel(), "reshape: ", c.in(0), " has ", c.in(0).numel(),
              " elements, ", shape, " has ", shape.numel(), "; the numbers must agree");
      return {{c.in(0).dtype, shape, {}}};
    },
    .factors = reshape_factors,
    .grad = [](GradCall& g) -> void {
      const bool gathers = g.call.flag_or(kGathersName, false);
      g.din(0) = (gathers ? regroup : reshape)(g.dout(0), g.in(0).shape(), {});
    },
    .reference = {reshape_reference, reshape_reference},
    .in_place = {InPlace{0, 0}},
    .view = reshape_view,
};

Value reshape(Value x, Shape shape, Where where) {
  std::int64_t known = 1;
  int open = -1;
  for (int d = 0; d < shape.ndim(); ++d) {
    require(shape[d] >= -1 && (shape[d] != -1 || open < 0), "reshape: ", shape,
            " leaves more than one size open; give all but one");
    if (shape[d] == -1)
      open = d;
    else
      known *= shape[d];
  }
  if (open >= 0) {
    require(known > 0 && x.type().numel() % known == 0, "reshape: ", x.type(),
            " does not divide into ", shape,
            "; the known sizes must divide its number of elements, ", x.type().numel());
    shape[open] = x.type().numel() / known;
  }
  if (shape == x.shape()) return x;
  return x.builder().add(kReshape, {x}, {Ints(shape.begin(), shape.end())}, where);
}

Value regroup(Value x, Shape shape, Where where) {
  if (shape == x.shape()) return x;
  return x.builder().add(kReshape, {x}, {Ints(shape.begin(), shape.end()), true}, where);
}

bool gathers_parts(const Node& node) {
  const int at = node.op->attrs.find(kGathersName);
  return at >= 0 && at < static_cast<int>(node.attrs.size()) &&
         std::get<bool>(node.attrs[static_cast<std::size_t>(at)]);
}

}  // namespace tessera
