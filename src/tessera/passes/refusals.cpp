#include "tessera/passes/refusals.h"

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

}  // namespace

void refuse_time(const Node& node, const Question& question, int axis) {
  const Factors& rule = *question.rule;
  bool sharded = false, summed = false;
  for (std::size_t i = 0; i < question.ins.size(); ++i) {
    const Stand stand = question.ins[i].have[at(axis)];
    summed = summed || is_partial(stand);
    if (stand < 0) continue;
    sharded = true;
    const std::vector<int>& fs = rule.ins[i][at(stand)];
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

std::string why_lost(const Node& node, const Question& question, const Answer::Lost& lost,
                     const Axes& axes) {
  const Axis& axis = axes[lost.axis];
  const Factors& rule = *question.rule;
  const std::vector<int>& fs = rule.ins[at(lost.operand)][at(lost.dim)];
  std::vector<std::string> sizes;
  for (const int f : fs) sizes.push_back(text(rule.list[at(f)].size));
  return text(node.op->name, " in ", node.block, " cannot be split by axis '", axis.name,
              "' of size ", axis.size, ": dim ", lost.dim, " of ",
              *question.ins[at(lost.operand)].type, " is ", join(sizes, " x "),
              " (major first), and the axis must divide the major part; choose a size of '",
              axis.name, "' that divides ", fs.empty() ? 1 : rule.list[at(fs[0])].size);
}

}  // namespace tessera
