#include "tessera/shard/local.h"
#include "tessera/passes/add_uses.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/passes/grad.h"
#include "tessera/passes/interpret_program.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/propagate.h"
#include "tessera/shard/auto_parallel.h"
#include "tessera/shard/shard.h"
#include "worst.h"

namespace tessera::test {
namespace {

using Outs = std::map<std::string, HostTensor>;

HostTensor numbers(const Shape& shape, double seed) {
  HostTensor out(DType::F64, shape);
  for (std::int64_t i = 0; i < out.numel(); ++i)
    out.set(i, std::sin(seed + 0.7 * static_cast<double>(i)));
  return out;
}

/// A model of x [8, 16], w1 [16, 32], w2 [32, 16]: its loss.
using Model = std::function<Value(Value x, Value w1, Value w2)>;

/// Loss and gradients, as metrics.
Graph graph_of(const Model& model, std::vector<OpShard>* shards) {
  Builder builder;
  const Value x = builder.batch("x", {DType::F32, {8, 16}, {}});
  const Value w1 = builder.state("w1", {DType::F32, {16, 32}, {}}, Role::Parameter, {});
  const Value w2 = builder.state("w2", {DType::F32, {32, 16}, {}}, Role::Parameter, {});
  const Value loss = model(x, w1, w2);
  const std::vector<Value> grads = gradients(loss, {w1, w2});
  builder.output(Output::Kind::Metric, "loss", loss);
  builder.output(Output::Kind::Metric, "w1", grads[0]);
  builder.output(Output::Kind::Metric, "w2", grads[1]);
  *shards = shards_of(builder);
  return builder.finish();
}

Outs run(const Graph& graph, const Strategy& strategy, Program* program = nullptr) {
  Bindings inputs;
  inputs.batch["x"] = numbers({8, 16}, 0.1);
  inputs.states["w1"] = numbers({16, 32}, 0.2);
  inputs.states["w2"] = numbers({32, 16}, 0.3);
  const Program local = partition(propagate(add_uses(graph), strategy));
  if (program != nullptr) *program = local;
  Interpretation how;
  how.f64 = true;
  return interpret_program(local, inputs, how);
}

double square(double x) { return x * x; }

/// The largest difference, relative to the largest number.
void expect_equal(const Outs& got, const Outs& want) {
  for (const auto& [name, tensor] : want) {
    double most = 0, norm = 0;
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      most = worse_of(most, std::abs(got.at(name).at(i) - tensor.at(i)));
      norm += square(tensor.at(i));
    }
    EXPECT_GT(norm, 0) << name;
    EXPECT_LE(most, 1e-12 * std::sqrt(norm)) << name;
  }
}

Strategy hybrid(const Graph& graph, const std::vector<OpShard>& shards) {
  AutoParallel options;
  options.mode = ParallelMode::HybridParallel;
  options.device_num = 8;
  options.shards = shards;
  return parallelize(graph, options).strategy;
}

/// On one device, and on 8 ranks.
void expect_like(const Model& by_hand, const Model& plain, Program* program = nullptr) {
  std::vector<OpShard> shards, none;
  const Graph graph = graph_of(by_hand, &shards), whole = graph_of(plain, &none);
  const Outs want = run(whole, one_device(1));
  expect_equal(run(graph, one_device(1)), want);
  expect_equal(run(graph, hybrid(graph, shards), program), want);
}

Value plain_mlp(Value x, Value w1, Value w2) {
  const Value y = matmul(relu(matmul(x, w1)), w2);
  return sum_all(y * y);
}

std::vector<std::string> exchanges(const Program& program) {
  std::vector<std::string> out;
  for (const Region& region : program.regions) {
    for (const Node& node : region.graph.nodes()) {
      if (node.op->traits.exchanges)
        out.push_back(text(to_text(region.kind), " ", node.op->name, " ",
                           std::get<std::string>(node.attrs[0])));
    }
  }
  return out;
}

const DeviceLayout kRanks({2, 4}, {"dp", "mp"});

}  // namespace

/// Megatron's feed-forward, by hand.
TEST(Local, AFeedForwardWithItsOwnAllReduceIsThatOfOneDevice) {
  Program program;
  const auto by_hand = [](Value x, Value w1, Value w2) {
    const auto body = [](const LocalRanks& ranks, const std::vector<Value>& in) {
      EXPECT_EQ(in[0].shape(), Shape({2, 4, 4, 16}));
      EXPECT_EQ(in[1].shape(), Shape({2, 4, 16, 8}));
      return std::vector<Value>{ranks.all_reduce(matmul(relu(matmul(in[0], in[1])), in[2]), "mp")};
    };
    const Value y =
        local(body, {x, w1, w2}, {kRanks("dp", "None"), kRanks("None", "mp"), kRanks("mp", "None")},
              {kRanks("dp", "None")})[0];
    return sum_all(y * y);
  };
  expect_like(by_hand, plain_mlp, &program);
  const std::vector<std::string> sent = exchanges(program);
  EXPECT_EQ(std::count(sent.begin(), sent.end(), "forward all_reduce mp"), 1) << join(sent, "\n");
}

TEST(Local, EveryCollectiveHasItsGradient) {
  const auto with = [](const std::function<Value(const LocalRanks&, Value)>& collective,
                       const TensorLayout& out) {
    return [=](Value x, Value w1, Value w2) {
      const auto body = [&](const LocalRanks& ranks, const std::vector<Value>& in) {
        return std::vector<Value>{collective(ranks, matmul(in[0], in[1]))};
      };
      const Value h = local(body, {x, w1}, {kRanks("dp", "mp"), kRanks("mp", "None")}, {out})[0];
      const Value y = matmul(relu(h), w2);
      return sum_all(y * y);
    };
  };
  // A product of parts along mp is a sum along mp.
  expect_like(with([](const LocalRanks& r, Value p) { return r.all_reduce(p, "mp"); },
                   kRanks("dp", "None")),
              plain_mlp);
  expect_like(with([](const LocalRanks& r, Value p) { return r.reduce_scatter(p, "mp", -1); },
                   kRanks("dp", "mp")),
              plain_mlp);
  expect_like(with([](const LocalRanks& r,
                      Value p) { return r.all_gather(r.reduce_scatter(p, "mp", 0), "mp", 0); },
                   kRanks("dp", "None")),
              plain_mlp);
  expect_like(
      with([](const LocalRanks& r,
              Value p) { return r.all_to_all(r.reduce_scatter(p, "mp", -1), "mp", -1, -2); },
           kRanks({"dp", "mp"}, "None")),
      plain_mlp);
  expect_like(
      with([](const LocalRanks& r, Value p) { return r.broadcast(r.all_reduce(p, "mp"), "mp", 3); },
           kRanks("dp", "None")),
      plain_mlp);
}

TEST(Local, RefusesWhatDoesNotFit) {
  const auto message = [](const LocalBody& body, const std::vector<TensorLayout>& ins,
                          const std::vector<TensorLayout>& outs) -> std::string {
    Builder builder;
    const Value x = builder.batch("x", {DType::F32, {8, 6}, {}});
    try {
      local(body, {x}, ins, outs);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const LocalBody same = [](const LocalRanks&, const std::vector<Value>& in) { return in; };
  EXPECT_NE(message(same, {kRanks("dp", "mp")}, {kRanks("dp", "mp")})
                .find("dim 1 of shape [8,6] is split 4 times"),
            std::string::npos);
  EXPECT_NE(message(same, {}, {}).find("1 inputs, but 0 layouts"), std::string::npos);
  EXPECT_NE(message(same, {kRanks("dp", "None")}, {}).find("returns 1 values, but 0 layouts"),
            std::string::npos);
  const DeviceLayout other({8}, {"all"});
  EXPECT_NE(message(same, {kRanks("dp", "None")}, {other("all", "None")}).find("two matrices"),
            std::string::npos);
  const LocalBody scatters = [](const LocalRanks& r, const std::vector<Value>& in) {
    return std::vector<Value>{r.reduce_scatter(in[0], "mp", -1)};
  };
  EXPECT_NE(message(scatters, {kRanks("dp", "None")}, {kRanks("dp", "mp")})
                .find("dim 1 of size 6 cannot be cut in 4 parts"),
            std::string::npos);
  const LocalBody unknown = [](const LocalRanks& r, const std::vector<Value>& in) {
    return std::vector<Value>{r.all_reduce(in[0], "tp")};
  };
  EXPECT_NE(message(unknown, {kRanks("dp", "None")}, {kRanks("dp", "None")})
                .find("no axis 'tp'; the layout has dp, mp"),
            std::string::npos);
}

}  // namespace tessera::test
