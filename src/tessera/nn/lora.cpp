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

/// scale (dropout(x) A^T) B^T of the current block: xs [..., in] -> [..., out].
std::vector<Value> adapter_products(const std::vector<Value>& xs, std::int64_t out,
                                    const LoraConfig& lora, Value step, Where where) {
  Builder& builder = xs[0].builder();
  const std::int64_t in = xs[0].shape().back();
  const auto parameter = [&](std::string_view name, const Shape& shape, const WeightInit& init) {
    return builder.state(name, {DType::F32, shape, {}}, Role::Parameter, init.of(shape), where);
  };
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  const Value a = parameter("lora_a", {lora.rank, in}, uniform_init(bound)),
              b = parameter("lora_b", {out, lora.rank}, zeros_init());
  std::vector<Value> ys;
  for (const Value x : xs) {
    const std::string name = ys.empty() ? "lora_dropout" : text("lora_dropout", ys.size());
    const Value read = dropout_layer(x, lora.dropout, step, name, where),
                narrow = matmul(read, a, {.trans_b = true}, where);  // [..., rank]
    ys.push_back(matmul(narrow, b, {.trans_b = true}, where) * lora.scale());
  }
  return ys;
}

Shape with_last(const Shape& shape, const std::vector<std::int64_t>& last) {
  std::vector<std::int64_t> dims(shape.begin(), shape.end() - 1);
  dims.insert(dims.end(), last.begin(), last.end());
  return Shape(dims);
}

/// The same of parts, with zeros for those that have no adapter.
std::vector<Value> parts_products(const std::vector<Value>& xs, std::int64_t out,
                                  const LoraConfig& lora, const std::vector<RowPart>& parts,
                                  Value step, Where where) {
  Builder& builder = xs[0].builder();
  std::int64_t of_group = 0;
  for (const RowPart& part : parts) of_group += part.rows;
  const std::int64_t groups = out / of_group;
  std::vector<std::vector<Value>> all(xs.size());
  for (const RowPart& part : parts) {
    std::vector<Value> products;
    if (lora.adapts(part.name)) {
      const Scope scope(builder, part.name, where);
      products = adapter_products(xs, groups * part.rows, lora, step, where);
    }
    for (std::size_t i = 0; i < xs.size(); ++i) {
      const Shape grouped = with_last(xs[i].shape(), {groups, part.rows});
      all[i].push_back(products.empty()
                           ? broadcast_to(builder.constant(0, xs[i].dtype(), where), grouped)
                           : reshape(products[i], grouped, where));
    }
  }
  std::vector<Value> ys;
  for (std::size_t i = 0; i < xs.size(); ++i)
    ys.push_back(
        reshape(concat(all[i], xs[i].ndim(), where), with_last(xs[i].shape(), {out}), where));
  return ys;
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
  std::vector<Value> ys = linear(xs, name, out, options, where);
  const bool whole = lora.adapts(name),
             apart =
                 std::ranges::any_of(parts, [&](const RowPart&p) { return lora.adapts(p.name); });
  if (!whole && !apart) return ys;
  const Scope scope(xs[0].builder(), name, where);
  const std::vector<Value> more = whole ? adapter_products(xs, out, lora, step, where)
                                        : parts_products(xs, out, lora, parts, step, where);
  for (std::size_t i = 0; i < xs.size(); ++i) ys[i] = ys[i] + more[i];
  return ys;
}

}  // namespace tessera
