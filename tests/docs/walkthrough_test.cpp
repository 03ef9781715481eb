/// The example of docs/internals/passes.md: one linear layer on two tensor parallel ranks. The document
/// shows this code and the graphs that the compiler makes of it.

#include <gtest/gtest.h>

#include "docs/shown.h"
#include "tessera/ir/print.h"
#include "tessera/nn/layers.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/reduce.h"
#include "tessera/passes/grad.h"
#include "tessera/plan/compile.h"

namespace tessera::test {
namespace {

constexpr const char* kDocument = "docs/internals/passes.md";
constexpr const char* kFile = "tests/docs/walkthrough_test.cpp";

// [step]
Graph training_step() {
  Builder builder;
  const Value x = builder.batch("x", {DType::F32, {4, 8}, {}});
  const Value target = builder.batch("target", {DType::F32, {4, 6}, {}});

  const Value y = linear(x, "proj", 6, {.bias = false});
  builder.set_name(y, "out");
  const Value error = y - target;
  const Value loss = sum_all(error * error) * 0.5;

  const Value weight(builder, builder.so_far().find_state("proj.weight")->value);
  const Value gradient = gradients(loss, {weight})[0];
  builder.set_mark({"", Phase::Update, -1, Where::here()});
  builder.next(weight, weight - gradient * 0.1);
  builder.output(Output::Kind::Metric, "loss", loss);
  return builder.finish();
}
// [end]

// [strategy]
Strategy row_parallel() {
  Strategy out;
  out.mesh = parse_mesh("tp=2 mb=2@time");
  out.batch = {{"mb"}};
  out.pins = {{"proj.weight", parse_sharding("[-,tp]")}, {"proj.out", parse_sharding("[mb,-]")}};
  return out;
}
// [end]

/// Without the places in the source, which change with every line above.
std::string shown(const Graph& graph) {
  std::string out, text = to_text(graph);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t file = line.rfind(".cpp:");
    if (file != std::string::npos) line.erase(line.rfind(' ', file));
    out += line + "\n";
  }
  return out;
}

TEST(Walkthrough, TheDocumentShowsThisCode) { expect_shown(kDocument, kFile); }

TEST(Walkthrough, TheDocumentShowsTheseGraphs) {
  std::map<std::string, std::string> texts;
  CompileOptions options;
  options.observe = [&](const std::string&, const std::string& pass,
                        const std::vector<PassGraph>& graphs, double) {
    for (const auto& [region, graph, stage] : graphs)
      texts[text(pass, region.empty() ? "" : " ", region)] = shown(*graph);
  };
  compile({{"train", training_step(), row_parallel()}}, *make_cpu_device({.threads = 1}), options);
  for (const char* name : {"source", "propagate", "partition forward"})
    expect_text(kDocument, kFile, name, texts[name]);
}

}  // namespace
}  // namespace tessera::test
