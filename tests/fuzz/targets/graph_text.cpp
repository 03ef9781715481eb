/// The text form of graphs, over the whole op table.

#include "fuzz/target.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"
#include "tessera/ops/table.h"

namespace tessera::fuzz {

namespace {

void run(std::string_view input) {
  const Graph graph = parse_graph(input, find_op);
  then([&] {
    const std::string printed = to_text(graph);
    const Graph again = parse_graph(printed, find_op);
    check(to_text(again) == printed, "what is printed reads back as another graph:\n", printed);
    check(again == graph, "what is printed reads back as an unequal graph:\n", printed);
  });
}

}  // namespace

const Target kTarget = {512 << 20, 4096, run};

}  // namespace tessera::fuzz
