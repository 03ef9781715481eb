/// Blocks that are put on stages by hand: by a function of the layer's number, or by marks in the
/// model.

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/models/parallel.h"
#include "tessera/nn/layers.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/grad.h"
#include "tessera/passes/interpret_program.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/place_chunks.h"
#include "tessera/passes/propagate.h"
#include "tessera/report/pipeline_report.h"
#include "tessera/train/step.h"

namespace tessera {
namespace {

/// "embed, layers.0 | layers.1, head": the blocks of each chunk.
std::string cut_text(const Graph& graph, const PipelineStrategy& pipeline) {
  std::vector<std::vector<std::string>> chunks(at(pipeline.total()));
  for (const ChunkPin& pin : cut_into_chunks(graph, pipeline))
    chunks[at(pin.chunk)].push_back(pin.blocks);
  std::vector<std::string> out;
  for (const auto& blocks : chunks) out.push_back(blocks_text(blocks));
  return join(out, " | ");
}

TEST(PlaceByHand, AFunctionOfTheLayersNumber) {
  ModelConfig model;
  model.layers = 8;
  const Graph step = train_step(model, {}, 4, 8);
  ParallelConfig config{.devices = 2, .pipeline = 2};
  const auto cut = [&] { return cut_text(step, strategy_of(config).pipeline); };
  EXPECT_EQ(cut(), "embed, layers.0 ... layers.3 | layers.4 ... layers.7, norm, head, loss");
  config.chunks =
      chunks_by_layer(model, [](std::int64_t layer) { return layer < 3 ? 0 : 1; });  // parallel.h
  EXPECT_EQ(cut(), "embed, layers.0 ... layers.2 | layers.3 ... layers.7, norm, head, loss");
  // The embedding alone on the first stage.
  config.chunks = chunks_by_layer(model, [](std::int64_t) { return 1; });
  EXPECT_EQ(cut(), "embed | layers.0 ... layers.7, norm, head, loss");
  // Down the stages and up again: the first stage has chunks 0 and 3.
  config.schedule = "zb-v";
  config.chunks =
      chunks_by_layer(model, [](std::int64_t layer) { return static_cast<int>(layer / 2); });
  EXPECT_EQ(cut(),
            "embed, layers.0, layers.1 | layers.2, layers.3 | layers.4, layers.5 | "
            "layers.6, layers.7, norm, head, loss");
}

enum class Marked { None, Layers, Ops, Two };

/// Four layers and a head that reads the weight of the first one; one sample a row.
Graph marked_step(Marked mark) {
  Builder builder;
  Value x = builder.batch("x", {DType::F32, {4, 3}, {}}), tied;
  for (int i = 0; i < 4; ++i) {
    Scope layer(builder, text("layers.", i));
    const int stage = i == 0 ? 0 : 1;
    if (mark == Marked::Layers) layer.stage(stage);
    if (i == 0) {
      tied = builder.state("weight", {DType::F32, {3, 3}, {}}, Role::Parameter, {});
      x = matmul(x, tied);
    } else {
      x = linear(x, "up", 3);
    }
    x = gelu(x, GeluForm::Tanh);
    if (mark == Marked::Ops) x.stage(stage);
    if (mark == Marked::Two && i == 1) (x * 2.0).stage(0), x = (x * 3.0).stage(1);
  }
  Value loss;
  {
    Scope head(builder, "head");
    if (mark == Marked::Layers) head.stage(1);
    const Value y = matmul(x, tied, {.trans_b = true});
    loss = sum_all(y * y);
  }
  std::vector<Value> weights;
  for (const State& state : builder.so_far().states()) weights.emplace_back(builder, state.value);
  const std::vector<Value> grads = gradients(loss, weights);
  builder.set_mark({"", Phase::Update, -1, {}});
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::string path = builder.so_far().states()[i].path;
    builder.next(weights[i], weights[i] - grads[i] * 0.1);
  }
  builder.output(Output::Kind::Metric, "loss", loss);
  return builder.finish();
}

TEST(PlaceByHand, MarksInTheModel) {
  const PipelineStrategy two{2};
  EXPECT_EQ(cut_text(marked_step(Marked::None), two),
            "layers.0, layers.1 | layers.2, layers.3, head");
  for (const Marked mark : {Marked::Layers, Marked::Ops})
    EXPECT_EQ(cut_text(marked_step(mark), two), "layers.0 | layers.1 ... layers.3, head");
  PipelineStrategy told = two;
  told.pins = {{"layers.1", 0}};
  EXPECT_EQ(cut_text(marked_step(Marked::Ops), told),
            "layers.0, layers.1 | layers.2, layers.3, head")
      << "the strategy has the last word";
  try {
    cut_text(marked_step(Marked::Two), two);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what())
                  .find("block 'layers.1' is in the chunks 0 and 1; put all of it in one"),
              std::string::npos)
        << error.what();
  }
}

/// With marks or without, on one stage or two: the same numbers.
TEST(PlaceByHand, MarksChangeNoNumber) {
  Bindings inputs;
  const Graph plain = marked_step(Marked::None);
  double n = 0;
  const auto filled = [&](const TensorType& type) {
    HostTensor out(type);
    for (std::int64_t i = 0; i < out.numel(); ++i) out.set(i, 0.5 * std::sin(n += 1));
    return out;
  };
  for (const State& state : plain.states())
    inputs.states.emplace(state.path, filled(plain.type(state.value)));
  inputs.batch.emplace("x", filled({DType::F32, {4, 3}, {}}));
  Interpretation how;
  how.f64 = true;
  const std::vector<HostTensor> whole = interpret(plain, inputs, how);
  const auto expect_whole = [&](const std::map<std::string, HostTensor>& outputs) {
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const Output& output = plain.outputs()[i];
      const HostTensor& other =
          outputs.at(output.kind == Output::Kind::Next ? "next " + output.name : output.name);
      for (std::int64_t e = 0; e < other.numel(); ++e)
        EXPECT_NEAR(other.at(e), whole[i].at(e), 1e-12) << output.name;
    }
  };
  for (const Marked mark : {Marked::None, Marked::Layers, Marked::Ops}) {
    const Graph graph = marked_step(mark);
    const Strategy one = one_device(2);
    expect_whole(interpret_program(partition(propagate(add_uses(graph), one)), inputs, how));
    const Graph placed = propagate(add_uses(place_chunks(graph, cut_into_chunks(graph, {2}))), one);
    const Pipeline pipeline(make_schedule("1f1b", {2, 1, 2}));
    expect_whole(interpret_stages({partition(placed, pipeline, 0), partition(placed, pipeline, 1)},
                                  inputs, how));
  }
}

}  // namespace
}  // namespace tessera
