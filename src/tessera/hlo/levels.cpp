#include "tessera/hlo/levels.h"

#include <algorithm>
#include <map>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/ir/builder.h"

namespace tessera::hlo {

std::vector<std::vector<int>> levels_of(const std::vector<const Graph*>& stages) {
  std::vector<std::vector<int>> out;
  std::map<std::string, int> sent;  // by message, the level of what is sent
  std::size_t messages = 0;
  for (const Graph* graph : stages) {
    out.emplace_back(graph->nodes().size(), 0);
    for (const Output& output : graph->outputs()) {
      if (output.kind == Output::Kind::Send) sent[output.name] = 0, ++messages;
    }
  }
  const auto pass = [&] {
    bool changed = false;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      for (NodeId id = 0; id < stages[s]->size(); ++id) {
        const Node& node = stages[s]->node(id);
        int level = 0;
        for (const ValueId input : node.inputs) level = std::max(level, out[s][at(input.node)]);
        if (node.op == &kReceive) {
          const auto found = sent.find(std::get<std::string>(node.attrs[0]));
          check(found != sent.end(), "nobody sends message '", node.attrs[0], "'");
          level = found->second + 1;
        }
        changed = changed || level != out[s][at(id)];
        out[s][at(id)] = level;
      }
      for (const Output& output : stages[s]->outputs()) {
        if (output.kind == Output::Kind::Send) sent[output.name] = out[s][at(output.value.node)];
      }
    }
    return changed;
  };
  // A chain of messages is at most as long as there are messages.
  for (std::size_t i = 0; pass(); ++i) check(i <= messages, "messages of a region in a circle");
  return out;
}

}  // namespace tessera::hlo
