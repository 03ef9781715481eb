/// From data parallel to model parallel in one network: Z = (X x W) x V on four devices.
///
///   class DenseMatMulNet(nn.Cell):                        # the same in MindSpore
///       def __init__(self):
///           self.matmul1 = ops.MatMul().shard(((4, 1), (1, 1)))
///           self.matmul2 = ops.MatMul().shard(((1, 1), (1, 4)))
///       def construct(self, x, w, v):
///           y = self.matmul1(x, w)
///           z = self.matmul2(y, v)
///           return z
///
/// The first product is split by rows of X, so device i has rows Y_i. The second is split by
/// columns of V and needs all rows of Y on every device. The compiler finds that and inserts one
/// all_gather of Y between them.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "tessera/tessera.h"

namespace {

using namespace tessera;

constexpr std::int64_t kRows = 8, kIn = 6, kMiddle = 5, kOut = 4;

/// The network, on four devices or on one.
ParallelStep dense_matmul_net(std::int64_t devices) {
  Builder builder;
  const Value x = builder.batch("x", {DType::F32, {kRows, kIn}, {}});
  const Value w = builder.batch("w", {DType::F32, {kIn, kMiddle}, {}});
  const Value v = builder.batch("v", {DType::F32, {kMiddle, kOut}, {}});
  const Value y = shard(matmul(x, w), {{4, 1}, {1, 1}});
  const Value z = shard(matmul(y, v), {{1, 1}, {1, 4}});
  builder.output(Output::Kind::Metric, "z", z);

  AutoParallel options;
  if (devices > 1) {
    options.mode = ParallelMode::SemiAutoParallel;
    options.device_num = devices;
    options.dataset_strategy = {DatasetStrategy::Kind::Splits, {{4, 1}, {1, 1}, {1, 4}}};
    options.shards = shards_of(builder);
  }
  return parallelize(builder.finish(), options);
}

/// Small whole numbers, so that sums are exact in any order.
void fill(BatchInputs& batch) {
  std::int64_t n = 0;
  for (const char* name : {"x", "w", "v"}) {
    for (float& number : batch.fill<float>(name)) number = static_cast<float>(++n * 3 % 7 - 3);
  }
}

struct Outcome {
  HostTensor z;
  std::vector<std::string> moves;  // what one device does with the others, in order
};

Outcome run(std::int64_t devices) {
  const ParallelStep step = dense_matmul_net(devices);
  Outcome out;
  run_ranks(static_cast<int>(devices), [&](Communicator& world) {
    const std::unique_ptr<Device> device = make_cpu_device({.threads = 1});
    CompileOptions mine;
    mine.rank = world.rank();
    RankGroup group(compile({{"net", step.graph, step.strategy}}, *device, mine), *device, &world);
    if (world.rank() > 0) return group.follow();

    group.run("net", fill);
    out.z = group.engine().metric("net", "z");
    for (const RegionPlan& region : group.plan().program("net").regions) {
      for (const Call& call : region.calls) {
        if (call.transfer)
          out.moves.push_back(
              text(call.transfer->collective.kind, " to ", call.transfer->collective.whole));
      }
    }
    group.stop();
  });
  return out;
}

}  // namespace

int main() try {
  const Outcome one = run(1), four = run(4);
  for (const std::string& move : four.moves) std::printf("%s\n", move.c_str());
  double furthest = 0;
  for (std::int64_t i = 0; i < one.z.numel(); ++i)
    furthest = std::max(furthest, std::abs(one.z.at(i) - four.z.at(i)));
  std::printf("furthest from one device: %g\n", furthest);

  // Y between the products; and Z, which is split by columns, to be read as a whole.
  const std::vector<std::string> expected = {"all_gather to [8,5]", "all_gather to [8,4]"};
  if (one.moves.empty() && four.moves == expected && furthest == 0) return 0;
  std::fprintf(stderr, "not what was expected\n");
  return 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
