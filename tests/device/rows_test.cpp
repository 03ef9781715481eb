/// Every row that ops are tested by, on the device: whole, and on the shards that its rule admits.

#include <iostream>

#include "device/kernel_test.h"
#include "ops/sharded.h"

namespace tessera::test {
namespace {

/// Sums of a few dozen products: some hundred roundings of 2^-24.
constexpr testing::Tolerance kTolerance{2e-5, 2e-5};

/// Operands as a device stores them: floats that f32 holds.
Tensors narrow(const Case& c) {
  Tensors out;
  for (const HostTensor& in : operands(c))
    out.push_back(in.dtype() == DType::F64 ? in.cast(DType::F32) : in);
  return out;
}

/// The part of a value that a rank holds, as a kernel is told.
ShardInfo shard_of(const Result& result, const Mesh& mesh, const Coordinates& at) {
  const int ndim = result.logical.ndim();
  const Shape zeros = Shape::of(ndim, 0);
  ShardInfo out{result.logical, zeros, zeros, zeros};
  for (int d = 0; d < ndim; ++d) {
    const Axes& axes = result.placement->sharding.dims[static_cast<std::size_t>(d)];
    const Extent mine = extent(result.logical[d], axes, mesh, at);
    out.offset[d] = mine.start;
    out.limit[d] = mine.start + mine.valid;
  }
  return out;
}

Tensors run_on(Device& device, const Graph& local, NodeId node, const Tensors& ins,
               const Coordinates& at) {
  const Node& n = local.node(node);
  testing::KernelSetting setting;
  for (const ValueId input : n.inputs)
    setting.ins.push_back(shard_of(local.result(input), local.mesh(), at));
  TensorTypes types;
  for (const Result& result : n.results) {
    types.push_back(result.type);
    setting.outs.push_back(shard_of(result, local.mesh(), at));
  }
  return testing::run_kernel(device, *n.op, n.attrs, ins, types, setting).outs;
}

}  // namespace

TEST(Rows, EqualTheReferenceOnTheDevice) {
  for (const int threads : {1, 3}) {
    const std::unique_ptr<Device> device = make_cpu_device({threads, -1});
    for (const Case& c : all_cases()) {
      SCOPED_TRACE(text(title(c), ", threads ", threads));
      testing::expect_like_reference(*device, *c.op, c.attrs, narrow(c), kTolerance);
    }
  }
}

TEST(Rows, ShardsGiveTheWholeOnTheDevice) {
  const std::unique_ptr<Device> device = make_cpu_device({2, -1});
  const RunNode run_node = [&](const Graph& local, NodeId node, const Tensors& ins,
                               const Coordinates& at) {
    return run_on(*device, local, node, ins, at);
  };
  int shardings = 0;
  for (const Case& c : all_cases()) {
    const Subject subject = subject_of(c);
    const Tensors ins = narrow(c);
    Tensors wide;
    for (const HostTensor& in : ins)
      wide.push_back(in.dtype() == DType::F32 ? in.cast(DType::F64) : in);
    const Tensors want = results(c, wide);
    const Factors factors = subject.factors();
    for (const Mesh& mesh : {Mesh({{"a", 2}}), Mesh({{"a", 3}}), Mesh({{"a", 2}, {"b", 2}})}) {
      for (const Assignment& assignment : admitted(factors, mesh)) {
        if (needs_expansion(factors, assignment)) continue;
        SCOPED_TRACE(text(title(c), " | ", factors, " | ", describe(factors, assignment, mesh)));
        const Tensors outs =
            run_on_ranks(*subject.graph, subject.node, ins, mesh, assignment, 1, run_node);
        for (std::size_t j = 0; j < want.size(); ++j)
          testing::expect_close(outs[j], want[j], kTolerance);
        ASSERT_FALSE(has_failed());
        ++shardings;
      }
    }
  }
  std::cout << shardings << " shardings\n";
  RecordProperty("shardings", shardings);
  EXPECT_GT(shardings, 2000);
}

}  // namespace tessera::test
