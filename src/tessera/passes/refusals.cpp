#include "tessera/passes/refusals.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/index.h"

namespace tessera {

namespace {

std::string place_of(const Node& node) {
  std::vector<std::string> inputs;
  for (const ValueId input : node.inputs) inputs.push_back(to_text(input));
  std::string out = text(node.op->name, "(", join(inputs), ")");
  if (!node.block.empty()) out += text(", ", node.block);
  if (node.where.line > 0) out += text(", written at ", node.where.file, ":", node.where.line);
  return out;
}

/// The dim of a result in which a factor lies beside others; nullptr where it is alone.
const std::vector<int>* merged_dim(const Factors& rule, int factor) {
  for (const Factors::Dims& dims : rule.outs) {
    for (const std::vector<int>& fs : dims) {
      if (fs.size() > 1 && std::ranges::find(fs, factor) != fs.end()) return &fs;
    }
  }
  return nullptr;
}

/// "4 x 3"
std::string sizes(const Factors& rule, const std::vector<int>& factors) {
  std::vector<std::string> out;
  for (const int f : factors) out.push_back(text(rule.list[at(f)].size));
  return join(out, " x ");
}

}  // namespace

void refuse_time(const Node& node, const Undecided& undecided, int axis) {
  const Factors& rule = *undecided.rule;
  bool sharded = false, summed = false;
  for (std::size_t i = 0; i < undecided.ins.size(); ++i) {
    const AxisPlacement on_axis = undecided.ins[i].have[at(axis)];
    summed = summed || is_partial(on_axis);
    if (on_axis < 0) continue;
    sharded = true;
    const std::vector<int>& fs = rule.ins[i][at(on_axis)];
    if (fs.empty() || rule.list[at(fs[0])].kind == FactorKind::Pass) continue;
    fail(Fault::Usage, node.op->name,
         " mixes rows of the batch, so it cannot be cut into micro-batches: its rule is ", rule,
         "\n    node ", place_of(node));
  }
  if (sharded && summed)
    fail(Fault::Usage, node.op->name,
         " needs a sum over mb: it reads, inside a micro-batch, a value that is complete only "
         "after the last one; run it with one micro-batch, or keep it out of the model\n    node ",
         place_of(node));
  fail(Fault::Usage, node.op->name, " cannot be cut into micro-batches: its rule is ", rule,
       "\n    node ", place_of(node));
}

std::string why_lost(const Node& node, const Undecided& undecided,
                     const NodeDecision::LostSharding& lost, const Axes& axes) {
  const Axis& axis = axes[lost.axis];
  const Factors& rule = *undecided.rule;
  const std::vector<int>& fs = rule.ins[at(lost.operand)][at(lost.dim)];
  const std::string in = node.block.empty() ? "" : text(" in ", node.block);
  const std::string refused =
      text(node.op->name, in, " cannot be split by axis '", axis.name, "' of size ", axis.size,
           ": dim ", lost.dim, " of ", *undecided.ins[at(lost.operand)].type);
  const std::vector<int>* merged = fs.size() == 1 ? merged_dim(rule, fs[0]) : nullptr;
  if (merged != nullptr && (*merged)[0] != fs[0])
    return text(refused, " is a minor part of what becomes ", sizes(rule, *merged),
                " (major first), and no axis splits the major part to the end; split that, or ",
                "leave '", axis.name, "' out");
  const std::vector<int>& parts = merged != nullptr ? *merged : fs;
  std::int64_t left = parts.empty() ? 1 : rule.list[at(parts[0])].size;
  const Undecided::Operand& operand = undecided.ins[at(lost.operand)];
  const Choices on_axes = factors_on_axes(rule, rule.ins[at(lost.operand)], operand.have, axes);
  for (int a = lost.axis + 1; a < axes.count(); ++a) {  // what minor axes leave of the major part
    if (!parts.empty() && on_axes[at(a)] == parts[0] && left % axes[a].size == 0)
      left /= axes[a].size;
  }
  return text(refused, merged != nullptr ? " is a part of what becomes " : " is ",
              sizes(rule, parts),
              " (major first), and the axis must divide the major part; choose a size of '",
              axis.name, "' that divides ", left);
}

}  // namespace tessera
