/// The choices of a node as placements of its operands and results, and the other way round.

#include <algorithm>

#include "tessera/base/index.h"
#include "tessera/passes/decide.h"

namespace tessera {

Choices factors_on_axes(const Factors& rule, const Factors::Dims& dims,
                        const AxisPlacements& on_axes, const Axes& axes) {
  Choices out;
  for (int a = 0; a < axes.count(); ++a) out.push_back(kReplicate);
  for (int d = 0; d < static_cast<int>(dims.size()); ++d) {
    const std::vector<int>& fs = dims[at(d)];
    std::size_t i = 0;
    std::int64_t left = fs.empty() ? 0 : rule.list[at(fs[0])].size;
    for (int a = 0; a < axes.count(); ++a) {
      if (on_axes[at(a)] != d) continue;
      const std::int64_t n = axes[a].size;
      while (fs.size() > 1 && left == 1 && i + 1 < fs.size()) left = rule.list[at(fs[++i])].size;
      if (fs.empty() || (fs.size() > 1 && left % n != 0)) {
        out[at(a)] = kNoFactor;
        continue;
      }
      out[at(a)] = static_cast<Choice>(fs[i]);
      left = (left + n - 1) / n;
    }
  }
  return out;
}

AxisPlacements required(const Undecided& q, const Choices& choices, int i, const Axes& axes) {
  const Factors& rule = *q.rule;
  AxisPlacements out = axes.whole();
  for (int a = 0; a < axes.count(); ++a) {
    const Choice choice = choices[at(a)];
    if (choice >= 0) {
      for (std::size_t d = 0; d < rule.ins[at(i)].size(); ++d) {
        const std::vector<int>& fs = rule.ins[at(i)][d];
        if (std::find(fs.begin(), fs.end(), choice) != fs.end())
          out[at(a)] = static_cast<AxisPlacement>(d);
      }
    }
    const AxisPlacement have = q.ins[at(i)].have[at(a)];
    if (have == kPartialOne && (choice == kRows || q.reads_rows(i, choice))) out[at(a)] = have;
    if (choice != kThrough || !rule.is_linear(i)) continue;
    bool first = true;  // the first operand that brings sums, where only one may
    for (const int other : rule.linear_operands) {
      if (other < i) first = first && !is_sum(q.ins[at(other)].have[at(a)]);
    }
    if (is_sum(have) && (rule.linear == Linear::Joint || first))
      out[at(a)] = have;
    else if (rule.linear == Linear::Joint)
      out[at(a)] = kPartialSum;
  }
  return out;
}

AxisPlacements natural(const Factors& rule, const Choices& choices, int r, const Axes& axes) {
  AxisPlacements out = axes.whole();
  for (int a = 0; a < axes.count(); ++a) {
    const Choice choice = choices[at(a)];
    if (choice == kThrough) out[at(a)] = kPartialSum;
    if (choice == kRows) out[at(a)] = kPartialOne;
    if (choice < 0) continue;
    if (rule.reduces(choice, r)) out[at(a)] = partial_placement(rule.monoid(choice));
    for (std::size_t d = 0; d < rule.outs[at(r)].size(); ++d) {
      const std::vector<int>& fs = rule.outs[at(r)][d];
      if (std::find(fs.begin(), fs.end(), choice) != fs.end())
        out[at(a)] = static_cast<AxisPlacement>(d);
    }
  }
  // Beside another sum it is one, too: a value is partial by one monoid.
  if (std::find(out.begin(), out.end(), kPartialSum) != out.end())
    std::replace(out.begin(), out.end(), kPartialOne, kPartialSum);
  return out;
}

ValueId rows_of(const Undecided& q, const Choices& choices) {
  for (const Choice choice : choices) {
    if (choice >= 0 && q.rule->list[at(choice)].kind == FactorKind::One) return q.ins[0].id;
    if (choice != kRows) continue;
    for (const Undecided::Operand& in : q.ins) {
      if (in.rows_of.valid()) return in.rows_of;
    }
  }
  return {};
}

}  // namespace tessera
