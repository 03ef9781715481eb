/// Rows of the ops' tests as random ops: an op that has a row is met in random graphs.

#include <algorithm>

#include "ops/harness.h"
#include "runtime/random_pool.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/fused.h"
#include "tessera/ops/reduce.h"

namespace tessera::fuzz {

namespace {

using test::Case;
using test::Operand;

/// An operand like the row's, made of a parameter: no row of the batch has a part in it.
Value operand(Pool& p, const Operand& wanted) {
  const auto& [dtype, shape, layout] = wanted.type;
  if (wanted.fill == Operand::Fill::Exactly)
    return broadcast_to(p.builder.constant(wanted.low, dtype), shape);
  const Value x = p.parameter(shape).value;
  switch (wanted.fill) {
    case Operand::Fill::Positive:
    case Operand::Fill::Made: return abs(x) + 0.5;
    case Operand::Fill::Ids:
      return cast(sigmoid(x) * (wanted.high - wanted.low) + wanted.low, dtype);
    case Operand::Fill::Bits: return less(p.builder.constant(0), x);
    default: return x;
  }
}

/// The rows, those of one op after another. What passes make, and the ends of gradients, are not
/// written by models.
const std::vector<std::vector<const Case*>>& rows_by_op() {
  static const std::vector<std::vector<const Case*>> kRowsByOp = [] {
    std::vector<std::vector<const Case*>> out;
    for (const Case& c : test::all_cases()) {
      if (c.op == &kFused || c.op == &kGradient) continue;
      const auto same = [&](const std::vector<const Case*>& rows) { return rows[0]->op == c.op; };
      const auto found = std::find_if(out.begin(), out.end(), same);
      if (found == out.end())
        out.push_back({&c});
      else
        found->push_back(&c);
    }
    return out;
  }();
  return kRowsByOp;
}

const auto& any_of(Pool& p, const auto& list) {
  return list[static_cast<std::size_t>(p.random.below(static_cast<std::int64_t>(list.size())))];
}

}  // namespace

void row_of_an_op(Pool& p) {
  const Case& c = *any_of(p, any_of(p, rows_by_op()));
  std::vector<Value> ins;
  for (const Operand& wanted : c.ins) ins.push_back(operand(p, wanted));
  Attrs attrs = c.attrs;
  const int key = c.op->attrs.find("key");  // of random numbers: no two ops draw the same
  if (key >= 0 && !std::get<std::string>(attrs[static_cast<std::size_t>(key)]).empty()) {
    attrs = attrs.with(static_cast<std::size_t>(key), p.builder.random_path(p.fresh_name("row")));
  }
  const std::vector<Value> outs = p.builder.add_all(*c.op, ins, std::move(attrs));
  for (std::size_t j = 0; j < outs.size(); ++j) {
    const DType dtype = outs[j].dtype();
    if (dtype != DType::F32 && dtype != DType::I32 && dtype != DType::Bool) continue;
    Item item{outs[j]};
    item.size = 20;  // an exponential of what parameters may be
    item.trained = true;
    item.gradient_stops = c.op->grad == nullptr || !test::flows(c, static_cast<int>(j), dtype);
    p.push(item, {});
  }
}

}  // namespace tessera::fuzz
