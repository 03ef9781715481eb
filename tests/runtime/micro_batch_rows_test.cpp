/// Reductions over rows that ranks and micro-batches share unevenly, run on devices: every row
/// counts once, padding never, and a NaN is seen wherever it is.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tessera/comm/local.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/reduce.h"
#include "tessera/plan/compile.h"
#include "tessera/runtime/executor.h"

namespace tessera {
namespace {

/// Sum of exp(x), greatest and least x. What reads nothing but batch inputs is not cut into
/// micro-batches, so x is multiplied by a state, which is 1.
Graph reductions(std::int64_t rows) {
  Builder builder;
  const Value one = builder.state("one", {DType::F32, {3}, {}}, Role::Parameter, {});
  const Value x = builder.batch("x", {DType::F32, {rows, 3}, {}}) * one;
  builder.output(Output::Kind::Metric, "sum", sum_all(exp(x)));
  builder.output(Output::Kind::Metric, "greatest", max(x, {0, 1}));
  builder.output(Output::Kind::Metric, "least", -max(-x, {0, 1}));
  return builder.finish();
}

constexpr float kPadding = 50;  // in every result, where it counts

struct Numbers {
  double sum = 0, greatest = 0, least = 0;
};

Numbers on_devices(const std::string& mesh, const std::vector<std::string>& major,
                   const std::vector<float>& x) {
  Strategy strategy;
  strategy.mesh = parse_mesh(mesh);
  strategy.major = major;
  strategy.batch = {{std::string(kMicrobatchAxis)}};
  std::vector<std::string> rows = major;
  for (const Axis& axis : strategy.mesh.axes()) {
    if (std::find(rows.begin(), rows.end(), axis.name) == rows.end()) rows.push_back(axis.name);
  }
  strategy.pins = {{"x", parse_sharding(text("[", join(rows, "."), ",-]"))}};
  Numbers out;
  run_ranks(static_cast<int>(strategy.mesh.ranks()), [&](Communicator& world) {
    const auto device = make_cpu_device({.threads = 1});
    CompileOptions options;
    options.rank = world.rank();
    Executor executor(
        compile({{"step", reductions(static_cast<std::int64_t>(x.size()) / 3), strategy}}, *device,
                options),
        *device, &world);
    // A rank is given all rows of its micro-batches; axes behind that of time cut each of these.
    const std::vector<std::string> ranks(rows.begin(),
                                         std::find(rows.begin(), rows.end(), kMicrobatchAxis));
    const Extent mine = extent(static_cast<std::int64_t>(x.size()) / 3, ranks, strategy.mesh,
                               coordinates_of(strategy.mesh, world.rank()));
    std::vector<float> share(static_cast<std::size_t>(mine.padded) * 3, kPadding);
    std::copy_n(x.begin() + mine.start * 3, mine.valid * 3, share.begin());
    executor.write_state("one", [](std::span<std::byte> one) {
      std::fill_n(reinterpret_cast<float*>(one.data()), one.size() / sizeof(float), 1.0F);
    });
    executor.run("step", [&](BatchInputs& batch) { batch.set("x", share); });
    if (world.rank() != 0) return;
    out = {executor.scalar("step", "sum"), executor.scalar("step", "greatest"),
           executor.scalar("step", "least")};
  });
  return out;
}

TEST(MicroBatchRows, EveryRowCountsOnce) {
  for (const int rows : {8, 10, 12, 22, 24}) {
    std::vector<float> x;
    double sum = 0;
    for (int i = 0; i < rows * 3; ++i) {
      x.push_back(static_cast<float>(3 + i % 7));
      sum += std::exp(static_cast<double>(x.back()));
    }
    x.back() = 20, sum += std::exp(20.0) - std::exp(3.0 + (rows * 3 - 1) % 7);
    for (const char* mesh : {"d=4 mb=2@time", "d=3 mb=2@time", "a=2 b=3 mb=2@time"}) {
      for (const std::vector<std::string>& major :
           {std::vector<std::string>{}, {"mb"}, {"b", "mb"}, {"b", "a", "mb"}}) {
        if (parse_mesh(mesh).ranks() != 6 && !major.empty() && major[0] == "b") continue;
        SCOPED_TRACE(text(rows, " rows on ", mesh, ", major ", join(major)));
        const Numbers found = on_devices(mesh, major, x);
        EXPECT_NEAR(found.sum, sum, sum * 1e-5);
        EXPECT_EQ(found.greatest, 20);
        EXPECT_EQ(found.least, 3);
      }
    }
  }
}

TEST(MicroBatchRows, ANaNIsSeenInAnyMicroBatch) {
  for (std::size_t at = 0; at < 24; at += 5) {
    std::vector<float> x(24, 1.0F);
    x[at] = std::numeric_limits<float>::quiet_NaN();
    for (const char* mesh : {"d=1 mb=4@time", "d=2 mb=2@time", "d=2 mb=4@time"}) {
      const Numbers found = on_devices(mesh, {}, x);
      EXPECT_TRUE(std::isnan(found.greatest)) << mesh << ", element " << at;
      EXPECT_TRUE(std::isnan(found.least)) << mesh << ", element " << at;
      EXPECT_TRUE(std::isnan(found.sum)) << mesh << ", element " << at;
    }
  }
}

}  // namespace
}  // namespace tessera
