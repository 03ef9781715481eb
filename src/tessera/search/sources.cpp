#include "tessera/search/sources.h"

#include <algorithm>

#include "tessera/base/index.h"
#include "tessera/ir/builder.h"

namespace tessera {

/// The operand's places, option by option.
const ValueSource& SourceTables::read_by(const OpMenu& menu, int operand) {
  ValueSource& out = sources_[{&menu, operand}];
  if (out.ports) return out;
  Ports ports;
  std::vector<int> each;
  for (const OpOption& option : menu.options)
    each.push_back(add_once(ports, Port{option.ins[at(operand)], option.gradients[at(operand)]}));
  out.ports = std::make_shared<const Ports>(std::move(ports));
  out.port_of = std::make_shared<const std::vector<int>>(std::move(each));
  return out;
}
const ValueSource& SourceTables::kept_by(const OpMenu& menu, int result) {
  ValueSource& out = sources_[{&menu, -1 - result}];
  if (out.ports) return out;
  Ports ports;
  std::vector<int> each;
  for (const OpOption& option : menu.options)
    each.push_back(add_once(ports, Port{option.kept[at(result)], option.kept[at(result)]}));
  out.ports = std::make_shared<const Ports>(std::move(ports));
  out.port_of = std::make_shared<const std::vector<int>>(std::move(each));
  return out;
}

/// A gradient on its way from who reads a value to who made it.
Cost SourceTables::come_back(const TensorType& type, const AxisPlacements& from,
                             const AxisPlacements& to, bool of_state) {
  if (from.size() == 0) return 0;
  if (to.size() == 0) return kNever;  // where it is read, no gradient was counted on
  if (of_state) return prices_.move(type, from, to, Traffic::Parameter);
  const bool sum = std::ranges::any_of(from, is_partial);
  return prices_.move(type, from, to, sum ? Traffic::Finish : Traffic::Between);
}

std::shared_ptr<const CostTable> SourceTables::between(const ValueSource& from, ValueId v,
                                                       const ValueSource& to) {
  const TensorType& type = graph_.type(v);
  const bool of_state = graph_.node(v.node).op == &kState;
  std::shared_ptr<const CostTable>& out =
      tables_[{from.port_of.get(), from.ports.get(), to.port_of.get(), to.ports.get(),
               2 * static_cast<int>(type.dtype) + of_state, to_text(type.shape)}];
  if (out) return out;
  const std::size_t n = to.ports->size();
  std::vector<Cost> between;
  for (const Port& a : *from.ports) {
    for (const Port& b : *to.ports) {
      between.push_back(prices_.move(type, a.on_axes, b.on_axes,
                                     of_state ? Traffic::Parameter : Traffic::Between) +
                        come_back(type, b.gradient, a.gradient, of_state));
    }
  }
  CostTable made{static_cast<int>(from.port_of->size()), static_cast<int>(to.port_of->size()), {}};
  made.costs.reserve(from.port_of->size() * to.port_of->size());
  for (const int a : *from.port_of) {
    for (const int b : *to.port_of) made.costs.push_back(between[at(a) * n + at(b)]);
  }
  out = std::make_shared<const CostTable>(std::move(made));
  return out;
}

}  // namespace tessera
