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

/// All pairs of a query and a key that see each other, counted.
TEST(Cost, OperationsOfAttentionAreThoseOfPairsThatAreSeen) {
  constexpr std::int64_t kSize = 3, kHeads = 4, kWidth = 8;
  for (const std::int64_t t : {1, 7, 12}) {
    for (const std::int64_t s : {1, 7, 12}) {
      for (const bool causal : {true, false}) {
        for (const std::int64_t window : {0, 1, 3, 7, 100}) {
          SCOPED_TRACE(text(s, " queries, ", t, " keys, window ", window, causal ? " causal" : ""));
          std::int64_t pairs = 0;
          const std::int64_t queries = std::max(s, t);
          for (std::int64_t i = 0; i < queries; ++i) {
            for (std::int64_t j = 0; j < t; ++j)
              pairs += (!causal || j <= i) && (window == 0 || std::abs(i - j) < window);
          }
          Builder builder;
          const auto rows = [&](const char* name, Shape shape) {
            return builder.batch(name, {DType::F32, shape, {}});
          };
          const Value k = rows("k", {kSize, t, kHeads / 2, kWidth});
          AttentionOptions options;
          options.causal = causal, options.window = window;
          const Value y =
              attention(rows("q", {kSize, s, kHeads / 2, 2, kWidth}), k, k, {}, {}, options).y;
          builder.output(Output::Kind::Metric, "y", y);
          const Graph graph = builder.finish();
          const OpCall call = graph.call(y.id().node);
          // Fewer queries than keys: a rank's part of them, on average.
          const double share = static_cast<double>(s) / static_cast<double>(queries);
          EXPECT_DOUBLE_EQ(kAttention.flops(call),
                           4.0 * kSize * kHeads * kWidth * static_cast<double>(pairs) * share);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tessera::test
