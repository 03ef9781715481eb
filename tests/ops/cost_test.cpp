// Bytes that a call moves: every operand and every result once, except where an op reads less.

#include <gtest/gtest.h>

#include "ops/harness.h"
#include "tessera/ops/attention.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/fused.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/shape_ops.h"

namespace tessera::test {
namespace {

TEST(Cost, BytesMoved) {
  const TensorType table{DType::F32, {1000, 8}, {}}, rows{DType::F32, {6, 8}, {}},
      row{DType::F32, {8}, {}}, ids{DType::I32, {6}, {}}, start{DType::I32, {}, {}},
      q{DType::F32, {2, 5, 3, 1, 4}, {}}, k{DType::F32, {2, 5, 3, 4}, {}};
  Builder inside;
  {
    const Value a = inside.batch("0", rows), b = inside.batch("1", row);
    inside.output(Output::Kind::Metric, "y", tanh(a + b) * a);
  }
  const auto body = std::make_shared<const Graph>(inside.finish());

  Builder builder;
  const auto input = [&](const char* name, const TensorType& type) {
    return builder.batch(name, type);
  };
  const Value t = input("table", table), x = input("rows", rows), i = input("ids", ids);
  const Value keys = input("k", k), values = input("v", k);
  struct Case {
    const char* name;
    Value result;
    double bytes;
  };
  const std::vector<Case> cases = {
      {"an operand that is broadcast counts once", x + input("row", row), 4 * (48 + 8 + 48)},
      {"of a chain, what enters and leaves", fused({x, input("row2", row)}, body)[0],
       4 * (48 + 8 + 48)},
      {"of a table, the rows that are named", gather(i, t), 4 * (6 + 48 + 48)},
      {"of rows, the elements that are named", pick(x, i), 4 * (6 + 6 + 6)},
      {"a gradient's whole table is written", scatter_add(i, x, 1000), 4 * (6 + 48 + 8000)},
      {"of a slice, the window", slice(t, 0, 10, 6), 4 * (48 + 48)},
      {"and where its start is a value", dynamic_slice(t, 0, input("start", start), 6),
       4 * (48 + 48)},
      {"attention never holds the scores", attention(input("q", q), keys, values, {}, {}, {}).y,
       4 * (120 + 2 * 120 + 120 + 30)},
  };
  std::vector<NodeId> nodes;
  for (const Case& c : cases) {
    builder.output(Output::Kind::Metric, text(nodes.size()), c.result);
    nodes.push_back(c.result.id().node);
  }
  const Graph graph = builder.finish();
  for (std::size_t n = 0; n < cases.size(); ++n)
    EXPECT_EQ(bytes_moved(graph.call(nodes[n])), cases[n].bytes) << cases[n].name;
}

}  // namespace
}  // namespace tessera::test
