#include "tessera/nn/lora.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/text.h"
#include "tessera/ir/strategy.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

namespace {

constexpr std::int64_t kMostRank = 1 << 16;

Value parameter_of(Builder& builder, std::string_view name, const Shape& shape,
                   const WeightInit& init, Where where) {
  return builder.state(name, {DType::F32, shape, {}}, Role::Parameter, init.of(shape), where);
}

/// What an adapter makes of rows of a layer.
struct AdaptedRows {
  std::vector<Value> products;  // scale (dropout(x) A^T) B^T of each x: [..., rows]
  Value longer;                 // by how much of it rows are longer, [rows]; DoRA's, else not valid
};

/// m / ||W + scale B A|| - 1 of the rows of a weight [rows, in]. Of small changes, not of what they
/// change, is computed: 1 would hide them in 16 bits.
Value longer_rows(Value weight, Value a, Value b, const LoraConfig& lora, Where where) {
  Builder& builder = weight.builder();
  const Value m = parameter_of(builder, "lora_magnitude", {b.shape()[0]}, zeros_init(), where);
  const auto dots = [&](Value x, Value y) { return sum(x * y, 1); };  // of rows: [rows]
  constexpr double kLeast = 1e-30;                                    // of a row of zeros
  const Value squares = stop_gradient(dots(weight, weight)) + kLeast,
              along = dots(matmul(weight, a, {.trans_b = true}, where), b),
              beside = dots(matmul(b, matmul(a, a, {.trans_b = true}, where), {}, where), b),
              grown = stop_gradient(along * (2 * lora.scale()) +
                                    beside * (lora.scale() * lora.scale())) /
                      squares,  // ||W + scale B A||^2 / ||W||^2 - 1
      root = sqrt(grown + 1.0),
              shrunk = -grown / (root * (root + 1.0)),  // ||W|| / ||W + scale B A|| - 1
      trained = m * rsqrt(squares);                     // m / ||W|| - 1
  return trained + shrunk + trained * shrunk;
}

/// Of the current block. `weight`: [rows, in].
AdaptedRows adapted_rows(const std::vector<Value>& xs, Value weight, const LoraConfig& lora,
                         Value step, Where where) {
  Builder& builder = xs[0].builder();
  const std::int64_t in = xs[0].shape().back(), rows = weight.shape()[0];
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  const Value a = parameter_of(builder, "lora_a", {lora.rank, in}, uniform_init(bound), where),
              b = parameter_of(builder, "lora_b", {rows, lora.rank}, zeros_init(), where);
  AdaptedRows out;
  for (const Value x : xs) {
    const std::string name =
        out.products.empty() ? "lora_dropout" : text("lora_dropout", out.products.size());
    const Value read = dropout_layer(x, lora.dropout, step, name, where),
                narrow = matmul(read, a, {.trans_b = true}, where);  // [..., rank]
    out.products.push_back(matmul(narrow, b, {.trans_b = true}, where) * lora.scale());
  }
  if (lora.decomposed) out.longer = longer_rows(weight, a, b, lora, where);
  return out;
}

Shape with_last(const Shape& shape, const std::vector<std::int64_t>& last) {
  std::vector<std::int64_t> dims(shape.begin(), shape.end() - 1);
  dims.insert(dims.end(), last.begin(), last.end());
  return Shape(dims);
}

/// The same of parts, with zeros for those that have no adapter.
AdaptedRows adapted_parts(const std::vector<Value>& xs, Value weight, const LoraConfig& lora,
                          const std::vector<RowPart>& parts, Value step, Where where) {
  Builder& builder = xs[0].builder();
  const std::int64_t out = weight.shape()[0], in = weight.shape()[1];
  std::int64_t of_group = 0, first = 0;
  for (const RowPart& part : parts) of_group += part.rows;
  const std::int64_t groups = out / of_group;
  std::vector<std::vector<Value>> all(xs.size());
  std::vector<Value> longer;  // [groups, rows of the part]
  for (const RowPart& part : parts) {
    const auto zeros = [&](const Shape& shape) {
      return broadcast_to(builder.constant(0, xs[0].dtype(), where), shape);
    };
    AdaptedRows of_part;
    if (lora.adapts(part.name)) {
      const Scope scope(builder, part.name, where);
      const Value rows =
          slice(reshape(weight, {groups, of_group, in}, where), 1, first, part.rows, where);
      of_part = adapted_rows(xs, reshape(rows, {groups * part.rows, in}, where), lora, step, where);
    }
    for (std::size_t i = 0; i < xs.size(); ++i) {
      const Shape grouped = with_last(xs[i].shape(), {groups, part.rows});
      all[i].push_back(of_part.products.empty() ? zeros(grouped)
                                                : reshape(of_part.products[i], grouped, where));
    }
    const Shape of_rows{groups, part.rows};
    if (lora.decomposed)
      longer.push_back(of_part.longer.valid() ? reshape(of_part.longer, of_rows, where)
                                              : zeros(of_rows));
    first += part.rows;
  }
  AdaptedRows joined;
  for (std::size_t i = 0; i < xs.size(); ++i)
    joined.products.push_back(
        reshape(concat(all[i], xs[i].ndim(), where), with_last(xs[i].shape(), {out}), where));
  if (lora.decomposed) joined.longer = reshape(concat(longer, 1, where), {out}, where);
  return joined;
}

}  // namespace

double LoraConfig::scale() const {
  const auto r = static_cast<double>(rank);
  return (alpha == 0 ? 2 * r : alpha) / (rank_stabilized ? std::sqrt(r) : r);
}

bool LoraConfig::adapts(std::string_view target) const {
  if (rank == 0) return false;
  if (targets.empty())
    return std::ranges::find(kStandardLoraTargets, target) != kStandardLoraTargets.end();
  return std::ranges::any_of(targets, [&](const std::string& one) {
    return one == target || (one == kAllLinear && target != "qkv" && target != "kv");
  });
}

bool is_of_adapter(std::string_view path) {
  return std::ranges::any_of(kLoraPaths,
                             [&](std::string_view paths) { return matches(paths, path); });
}

FieldProblems problems(const LoraConfig& c) {
  FieldProblems out;
  if (c.rank < 0 || c.rank > kMostRank)
    out.add({"lora-rank"},
            text("lora-rank is ", c.rank, "; it must be from 1 to ", kMostRank, ", or 0 for none"));
  if (!(c.alpha >= 0 && c.alpha <= 1e6))
    out.add({"lora-alpha"},
            text("lora-alpha is ", c.alpha,
                 "; it must be above 0 and at most 1e+06, or 0 for twice the rank"));
  if (!(c.dropout >= 0 && c.dropout < 1))
    out.add({"lora-dropout"},
            text("lora-dropout is ", c.dropout, "; it must be at least 0 and less than 1"));
  for (const std::string& target : c.targets) {
    if (std::ranges::find(kLoraTargets, target) == kLoraTargets.end())
      out.add({"lora-targets"},
              text("lora-targets has '", target, "'; it can have ", join(kLoraTargets)));
  }
  for (const std::string_view whole : {"qkv", "kv"}) {
    for (const std::string_view part : {"q", "k", "v"}) {
      if ((whole == "kv" && part == "q") || !c.adapts(whole) || !c.adapts(part)) continue;
      out.add({"lora-targets"}, text("lora-targets has ", whole, " and ", part,
                                     ", which is a part of it; leave one ", "of them out"));
    }
  }
  const std::pair<std::string_view, bool> given[] = {{"lora-targets", !c.targets.empty()},
                                                     {"lora-alpha", c.alpha != 0},
                                                     {"rslora", c.rank_stabilized},
                                                     {"dora", c.decomposed},
                                                     {"lora-dropout", c.dropout != 0}};
  for (const auto& [name, is_given] : given)
    if (c.rank == 0 && is_given)
      out.add({name, "lora-rank"},
              text(name, " does nothing without lora-rank; give one, as --lora-rank 8"));
  return out;
}

std::vector<RowPart> joined_rows(std::string_view layer, std::int64_t queries, std::int64_t width) {
  if (layer == "qkv") return {{"q", queries * width}, {"k", width}, {"v", width}};
  if (layer == "kv") return {{"k", width}, {"v", width}};
  return {};
}

std::vector<Value> lora_linear(const std::vector<Value>& xs, std::string_view name,
                               std::int64_t out, const LinearOptions& options,
                               const LoraConfig& lora, const std::vector<RowPart>& parts,
                               Value step, Where where) {
  const bool whole = lora.adapts(name),
             apart =
                 std::ranges::any_of(parts, [&](const RowPart&p) { return lora.adapts(p.name); });
  if (!whole && !apart) return linear(xs, name, out, options, where);
  Builder& builder = xs[0].builder();
  const Scope scope(builder, name, where);
  const Shape shape{out, xs[0].shape().back()};
  const Value weight = parameter_of(builder, "weight", shape, options.init, where);
  std::vector<Value> ys;
  for (const Value x : xs) ys.push_back(matmul(x, weight, {.trans_b = true}, where));
  const Value bias =
      options.bias ? parameter_of(builder, "bias", {out}, options.bias_init, where) : Value();
  const AdaptedRows adapted = whole ? adapted_rows(xs, weight, lora, step, where)
                                    : adapted_parts(xs, weight, lora, parts, step, where);
  const auto biased = [&](Value y) { return bias.valid() ? y + bias : y; };
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const Value more = adapted.products[i], y = ys[i] + more;
    ys[i] = adapted.longer.valid() ? biased(y + y * adapted.longer) : biased(ys[i]) + more;
  }
  return ys;
}

}  // namespace tessera
