/// What the caller of `compile` says of links reaches the passes; programs of one plan have one
/// mesh.

#include <gtest/gtest.h>

#include "machine_line.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/matmul.h"
#include "tessera/plan/compile.h"

namespace tessera {
namespace {

/// A gradient to be summed over all ranks, which is far smaller than the rows it is computed from.
Graph step() {
  Builder b;
  const Value x = b.batch("x", {DType::F32, {8192, 512}, {}});
  const Value w = b.state("w", {DType::F32, {512, 512}, {}}, Role::Parameter, {});
  const Value y = matmul(x, w);
  const Value dw = einsum("m k, m n -> k n", x, y, {});
  b.next(w, w - dw);
  return b.finish();
}

Strategy strategy(const char* mesh) {
  Strategy out;
  out.mesh = parse_mesh(mesh);
  out.batch = {{"a", "b"}};
  return out;
}

std::vector<std::string> transfers(const Machine& machine) {
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  CompileOptions options;
  options.machine = machine;
  const Plan plan = compile({{"step", step(), strategy("a=2@rack b=2")}}, *device, options);
  std::vector<std::string> out;
  for (const RegionPlan& region : plan.programs[0].regions) {
    for (const Call& call : region.calls) {
      if (call.transfer) out.push_back(text(call.op->name, " ", join(call.transfer->axes, ".")));
    }
  }
  return out;
}

TEST(Machine, ASumGoesOnceOverTheSlowLink) {
  EXPECT_EQ(transfers({}),
            (std::vector<std::string>{"reduce_scatter b", "all_reduce a", "all_gather b"}));
  EXPECT_EQ(transfers(parse_machine("core=10GB/s+1us rack=10GB/s+1us")),
            (std::vector<std::string>{"all_reduce a.b"}));
}

TEST(Machine, ProgramsOfOnePlanHaveOneMesh) {
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  EXPECT_NO_THROW(compile(
      {{"train", step(), strategy("a=2 b=2 mb=2@time")}, {"evaluate", step(), strategy("a=2 b=2")}},
      *device));
  try {
    compile({{"train", step(), strategy("a=2 b=2")}, {"evaluate", step(), strategy("a=4")}},
            *device);
    FAIL() << "their states would lie on other ranks";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what())
                  .find("program 'evaluate' is compiled for the mesh a=4, "
                        "program 'train' for a=2 b=2"),
              std::string::npos)
        << error.what();
  }
}

TEST(Machine, ProgramsOfOnePlanHaveOnePipeline) {
  Strategy two = strategy("a=2 b=2");
  two.pipeline.stages = 2;
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  try {
    compile({{"train", step(), two}, {"evaluate", step(), strategy("a=2 b=2")}}, *device);
    FAIL() << "their states would lie on other ranks";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Usage);
    EXPECT_TRUE(std::string_view(error.what())
                    .starts_with("program 'evaluate' is compiled for another pipeline"))
        << error.what();
  }
}

}  // namespace
}  // namespace tessera
