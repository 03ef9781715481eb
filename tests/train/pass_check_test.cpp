/// Each pass of the compiler held to the numbers before it: right ones pass, planted wrong ones are
/// found and named.

#include "tessera/plan/pass_check.h"

#include <gtest/gtest.h>

#include "tessera/device/device.h"
#include "tessera/models/parallel.h"
#include "tessera/ops/elementwise.h"
#include "tessera/passes/compute_in.h"
#include "tessera/passes/rewrite.h"
#include "tessera/plan/compile.h"
#include "train/tiny_step.h"

namespace tessera {
namespace {

constexpr std::int64_t kBatchSize = 12;

std::vector<ProgramSource> tiny_programs(const std::string& family, const ParallelConfig& parallel,
                                         bool bf16 = false) {
  const ModelConfig model = tiny(family);
  Graph step = train_step(task_of(model), {}, kBatchSize);
  if (bf16) step = compute_in(step, {});
  std::vector<ProgramSource> out;
  out.push_back({"init", initialise(step), strategy_of(parallel, BatchSplit::Whole, model)});
  out.push_back({"train", std::move(step), strategy_of(parallel, BatchSplit::Cut, model)});
  return out;
}

/// An add that is a subtraction, or the other way round: in the first graph of a pass that has one.
class Planted {
 public:
  explicit Planted(std::string pass) : pass_(std::move(pass)) {}
  bool done() const { return done_; }

  void operator()(const std::string& pass, Graph& graph) {
    if (done_ || pass != pass_) return;
    Rewrite rewrite(graph);
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph.node(id);
      const bool wrong = !done_ && (node.op == &kAdd || node.op == &kSub);
      if (!wrong) {
        rewrite.copy(id);
        continue;
      }
      done_ = true;
      Node changed = node;
      changed.op = node.op == &kAdd ? &kSub : &kAdd;
      changed.like = changed.remat_of = -1;
      changed.cotangent.reset();
      ValueIds inputs;
      for (const ValueId input : node.inputs) inputs.push_back(rewrite(input).id());
      rewrite.map({id, 0}, rewrite.to().copy(std::move(changed), std::move(inputs))[0]);
    }
    if (done_) graph = rewrite.finish();
  }

 private:
  std::string pass_;
  bool done_ = false;
};

TEST(PassCheck, PassesKeepTheNumbers) {
  struct Row {
    const char* why;
    std::string family;
    ParallelConfig parallel;
    bool bf16 = false;
  };
  for (const Row& row : {
           Row{"one device", "gpt2", {}},
           Row{"16 bits, of which nothing is rounded", "llama", {.devices = 2}, true},
           Row{"placements, collectives and shards of states",
               "bert",
               {.devices = 4,
               .tensor = 2,
               .shard_optimizer = true,
               .shard_gradients = true,
               .shard_parameters = true}},
           Row{"stages and micro-batches", "t5", {.devices = 2, .pipeline = 2, .micro_batches = 3}},
           Row{"gradients of weights apart",
               "gpt2",
               {.devices = 2, .pipeline = 2, .schedule = "zb-v", .micro_batches = 4}},
       }) {
    SCOPED_TRACE(row.why);
    PassCheck check;
    CompileOptions options;
    options.check = &check;
    const std::unique_ptr<Device> device = make_cpu_device({1, -1});
    EXPECT_NO_THROW(
        compile_stages(tiny_programs(row.family, row.parallel, row.bf16), *device, options));
    EXPECT_EQ(check.programs(), 2);
    EXPECT_GE(check.passes(), 12);
  }
}

/// Whichever pass is wrong, it is named, with the output, a node and both values.
TEST(PassCheck, NamesAWrongPass) {
  const ParallelConfig meshes[] = {{.devices = 2}, {.devices = 2, .pipeline = 2}};
  for (const ParallelConfig& parallel : meshes) {
    for (const char* pass : {"simplify", "propagate", "partition", "fuse", "pack"}) {
      SCOPED_TRACE(text(pass, ", stages ", parallel.pipeline));
      Planted planted(pass);
      PassCheck check;
      CompileOptions options;
      options.check = &check;
      options.plant = std::ref(planted);
      const std::unique_ptr<Device> device = make_cpu_device({1, -1});
      try {
        compile_stages(tiny_programs("gpt2", parallel), *device, options);
        ADD_FAILURE() << "not found";
      } catch (const Error& error) {
        EXPECT_TRUE(planted.done());
        EXPECT_EQ(error.fault(), Fault::Numerics);
        const std::string message = error.what();
        EXPECT_NE(message.find(text("in pass ", pass, " of program train")), std::string::npos)
            << message;
        for (const char* part : {"a pass changed numbers: element ", " after it and ",
                                 "\n    node %", "first node with a new value"})
          EXPECT_NE(message.find(part), std::string::npos) << message;
      }
    }
  }
}

TEST(PassCheck, RefusesWhatIsTooLarge) {
  ModelConfig model = tiny("gpt2");
  model.vocabulary = 50'000;
  model.width = 1024;
  PassCheck check;
  CompileOptions options;
  options.check = &check;
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  try {
    compile({{"train", train_step(task_of(model), {}, kBatchSize), strategy_of(ParallelConfig{})}},
            *device, options);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Usage);
    EXPECT_NE(std::string(error.what()).find("program 'train' has "), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("the limit is 4e+09"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tessera
