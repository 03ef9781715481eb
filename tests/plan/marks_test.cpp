/// Marks of stages in a model mean nothing without a pipeline.

#include <gtest/gtest.h>

#include "tessera/ir/print.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/matmul.h"
#include "tessera/plan/compile.h"

namespace tessera {
namespace {

/// Two ops read one value that tensor parallelism leaves unfinished: one all_reduce serves both.
Graph marked_step(bool marked) {
  Builder b;
  const auto on = [&](Value x, int stage) { return marked ? x.stage(stage) : x; };
  const Value x = b.batch("x", {DType::F32, {8, 16}, {}});
  const Value w = b.state("w", {DType::F32, {16, 16}, {}}, Role::Parameter, {});
  const Value y = on(matmul(x, w), 0);
  b.output(Output::Kind::Metric, "a", on(exp(y), 0));
  b.output(Output::Kind::Metric, "b", on(exp(y * y), 1));
  b.output(Output::Kind::Metric, "c", on(exp(y), 1));  // the same as a
  return b.finish();
}

/// What each pass leaves but the first.
std::vector<std::string> compiled(bool marked) {
  Strategy strategy;
  strategy.mesh = parse_mesh("tp=2");
  strategy.pins = {{"w", parse_sharding("[tp,-]")}};
  std::vector<std::string> out;
  CompileOptions options;
  options.observe = [&](const std::string&, const std::string& pass,
                        const std::vector<PassGraph>& graphs, double) {
    if (pass == "source") return;
    for (const PassGraph& left : graphs) out.push_back(text(pass, "\n", to_text(*left.graph)));
  };
  compile({{"step", marked_step(marked), strategy}}, *make_cpu_device({1, -1}), options);
  return out;
}

TEST(Marks, AreNotMetByPassesWithoutAPipeline) {
  const std::vector<std::string> plain = compiled(false), marked = compiled(true);
  ASSERT_EQ(marked.size(), plain.size());
  for (std::size_t i = 0; i < plain.size(); ++i) {
    // Lines of the source differ in nothing: both come from one function.
    EXPECT_EQ(marked[i], plain[i]);
    EXPECT_EQ(marked[i].find("stage="), std::string::npos);
  }
}

}  // namespace
}  // namespace tessera
