/// One product of matrices on two devices, four ways: what MindSpore's `MatMul().shard(...)` does.
///
///   [1 2]   [5 6]   [19 22]
///   [3 4] x [7 8] = [43 50]
///
/// A strategy says into how many parts each dim of each operand is split: ((2,1),(1,1)) gives each
/// of two devices one row of the first matrix and all of the second. The compiler inserts the
/// collectives that follow from it. The program is the same every time, and so are its numbers.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "tessera/tessera.h"

namespace {

using namespace tessera;

constexpr int kDevices = 2;
const std::vector<float> kA = {1, 2, 3, 4}, kB = {5, 6, 7, 8}, kProduct = {19, 22, 43, 50};

struct Variant {
  const char* code;
  Splits strategy;          // empty: none is given
  const char* collectives;  // that it needs until every device has the whole product
};
const Variant kVariants[] = {
    {"matmul(a, b)", {}, ""},
    {"shard(matmul(a, b), {{2, 1}, {1, 1}})", {{2, 1}, {1, 1}}, "all_gather"},  // rows of a
    {"shard(matmul(a, b), {{1, 1}, {1, 2}})", {{1, 1}, {1, 2}}, "all_gather"},  // columns of b
    {"shard(matmul(a, b), {{1, 2}, {2, 1}})", {{1, 2}, {2, 1}}, "all_reduce"},  // what is summed
};

/// The program and its strategy.
ParallelStep build(const Splits& strategy) {
  Builder builder;
  const Value a = builder.batch("a", {DType::F32, {2, 2}, {}});
  const Value b = builder.batch("b", {DType::F32, {2, 2}, {}});
  const Value c = matmul(a, b);
  if (!strategy.empty()) shard(c, strategy);
  builder.output(Output::Kind::Metric, "c", c);  // what is read from outside is whole everywhere

  AutoParallel options;
  options.mode = ParallelMode::AutoParallel;  // ops without a strategy follow those that have one
  options.device_num = kDevices;
  options.dataset_strategy.kind =
      DatasetStrategy::Kind::FullBatch;  // each device is fed all of a, b
  options.shards = shards_of(builder);
  return parallelize(builder.finish(), options);
}

struct Outcome {
  std::vector<float> product;
  std::string collectives;
};

/// Runs it on devices that are threads of this process; rank 0 returns the outcome.
Outcome run(const ParallelStep& step) {
  Outcome out;
  run_ranks(kDevices, [&](Communicator& world) {
    const std::unique_ptr<Device> device = make_cpu_device({.threads = 1});
    CompileOptions mine;
    mine.rank = world.rank();
    RankGroup group(compile({{"product", step.graph, step.strategy}}, *device, mine), *device,
                    &world);
    if (world.rank() > 0) return group.follow();

    group.run("product", [](BatchInputs& batch) {
      batch.set("a", kA);
      batch.set("b", kB);
    });
    const HostTensor c = group.engine().metric("product", "c");
    for (std::int64_t i = 0; i < c.numel(); ++i) out.product.push_back(static_cast<float>(c.at(i)));
    // The collectives are known before anything runs.
    for (const Flow& flow : flows_of(group.plan().program("product")))
      out.collectives += to_text(flow.kind);
    group.stop();
  });
  return out;
}

}  // namespace

int main() try {
  bool right = true;
  for (const Variant& variant : kVariants) {
    const Outcome got = run(build(variant.strategy));
    std::printf("%-38s %-10s [[%g, %g], [%g, %g]]\n", variant.code,
                got.collectives.empty() ? "nothing" : got.collectives.c_str(), got.product.at(0),
                got.product.at(1), got.product.at(2), got.product.at(3));
    right = right && got.product == kProduct && got.collectives == variant.collectives;
  }
  if (right) return 0;
  std::fprintf(stderr, "not what was expected\n");
  return 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
