/// Expansions compute what their op computes, from ops that need none.

#include <gtest/gtest.h>

#include "ops/harness.h"
#include "tessera/ops/expansion.h"

namespace tessera::test {

TEST(Expansion, EqualsTheOp) {
  int checked = 0;
  for (const Case& c : all_cases()) {
    if (c.op->expand == nullptr) continue;
    SCOPED_TRACE(title(c));
    ++checked;
    Builder builder;
    const Use used = use(builder, c);
    const Graph alone = builder.so_far();  // the call refers into it while the builder grows
    const NodeId node = used.outs[0].id().node;
    const std::vector<Value> outs = expansion(alone.call(node), used.ins);
    for (std::size_t j = 0; j < outs.size(); ++j) {
      ASSERT_TRUE(outs[j].valid()) << "result " << j << " is not expanded";
      ASSERT_EQ(to_text(outs[j].type()), to_text(used.outs[j].type())) << "result " << j;
      builder.output(Output::Kind::Metric, text("out", j), outs[j]);
    }
    const Graph graph = builder.finish();
    for (NodeId id = node + 1; id < graph.size(); ++id) {
      for (const Factor& factor : graph.factors(id).list) {
        EXPECT_NE(factor.kind, FactorKind::Stat)
            << graph.node(id).op->name << ": an expansion must not need another one";
      }
    }
    const Tensors ins = operands(c), want = results(c, ins), got = run(graph, bind(ins));
    for (std::size_t j = 0; j < want.size(); ++j) {
      expect_near(got[j], want[j], c.expand_tolerance, c.expand_tolerance, text("result ", j));
    }
  }
  RecordProperty("rows", checked);
}

}  // namespace tessera::test
