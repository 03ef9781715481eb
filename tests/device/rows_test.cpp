/// Every row that ops are tested by, on the device: whole, and on the shards that its rule admits.

#include <iostream>
#include <set>

#include "device/kernel_test.h"
#include "ops/sharded.h"
#include "tessera/device/cpu/blocks.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/fused.h"
#include "tessera/ops/matmul.h"

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

/// 16-bit floats: each kernel computes in f32 at least, and rounds its results once (attention by
/// AVX512-BF16 rounds inside too: rounded_inside). What is summed
/// in another order may round to a neighbour. In one block, and in blocks of few elements.
class SixteenBitRows : public ::testing::TestWithParam<std::int64_t> {};
TEST_P(SixteenBitRows, EqualTheReferenceOnTheDevice) {
  testing::ReferenceDevice reference;
  CpuOptions options{2, -1};
  options.block_bytes = GetParam();
  const std::unique_ptr<Device> device = make_cpu_device(options);
  for (const auto& [dtype, neighbour] : {std::pair{DType::BF16, 0x1p-7}, {DType::F16, 0x1p-10}}) {
    for (const Case& c : all_cases()) {
      SCOPED_TRACE(text(title(c), ", ", dtype));
      const Tensors ins = operands_in(c, dtype);
      const Tensors want = evaluate(*c.op, ins, c.attrs);
      const TensorTypes types = testing::result_types(*c.op, c.attrs, ins);
      const Tensors same = testing::run_kernel(reference, *c.op, c.attrs, ins, types).outs;
      const auto [kernel, outs] = testing::run_kernel(*device, *c.op, c.attrs, ins, types);
      for (std::size_t i = 0; i < want.size(); ++i) {
        SCOPED_TRACE(text(kernel, ", result ", i));
        testing::expect_close(same[i], want[i], {0, 0});
        const bool rounded = is_16_bit(want[i].dtype());
        const double inside = testing::rounded_inside(kernel, want[i]);
        testing::expect_close(outs[i], want[i],
                              rounded ? testing::Tolerance{neighbour, 2e-5 + inside} : kTolerance);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Blocks, SixteenBitRows, ::testing::Values(64, 200, 1 << 20));

/// A kernel that takes 16-bit floats computes what it computes in f32, and rounds each result once.
TEST(SixteenBits, HaveTheBitsOfF32Rounded) {
  const std::unique_ptr<Device> device = make_cpu_device({2, -1});
  std::set<std::string> compared;
  for (const DType dtype : {DType::BF16, DType::F16}) {
    for (const Case& c : all_cases()) {
      if (c.op == &kFused) continue;  // its body says where values are rounded
      SCOPED_TRACE(text(title(c), ", ", dtype));
      const Tensors ins = operands_in(c, dtype);
      Tensors wide;
      for (const HostTensor& in : ins)
        wide.push_back(is_16_bit(in.dtype()) ? in.cast(DType::F32) : in);
      const Attrs attrs = cpu::in_f32(c.attrs);
      const auto run = [&](const Attrs& how, const Tensors& operands) {
        return testing::run_kernel(*device, *c.op, how, operands,
                                   testing::result_types(*c.op, how, operands));
      };
      const testing::KernelRun narrow = run(c.attrs, ins), in_f32 = run(attrs, wide);
      if (narrow.kernel != in_f32.kernel) continue;  // another one, which may sum otherwise
      compared.insert(narrow.kernel);
      for (std::size_t i = 0; i < narrow.outs.size(); ++i) {
        SCOPED_TRACE(text(narrow.kernel, ", result ", i));
        const DType made = narrow.outs[i].dtype();
        testing::expect_close(narrow.outs[i],
                              is_16_bit(made) ? in_f32.outs[i].cast(made) : in_f32.outs[i], {0, 0});
      }
    }
  }
  for (const char* name : {"hwy:elementwise", "hwy:rows", "hwy:dropout", "hwy:softmax",
                           "hwy:cross_entropy", "hwy:cross_entropy_grad"})
    EXPECT_EQ(compared.count(name), 1u) << name;
}

/// An f32 of one element, such as a scale, may stand beside 16-bit floats on either side.
TEST(SixteenBits, StandBesideAnF32Scalar) {
  const std::unique_ptr<Device> device = make_cpu_device({2, -1});
  for (const DType dtype : {DType::BF16, DType::F16}) {
    const HostTensor x = testing::random_tensor(DType::F32, {3, 40}, 1).cast(dtype),
                     scalar = testing::random_tensor(DType::F32, {}, 2);
    for (const OpDef* op : {&kMul, &kDiv, &kAdd}) {
      for (const Tensors& ins : {Tensors{x, scalar}, Tensors{scalar, x}}) {
        SCOPED_TRACE(text(op->name, ", ", dtype));
        const testing::KernelRun run =
            testing::run_kernel(*device, *op, {}, ins, testing::result_types(*op, {}, ins));
        EXPECT_EQ(run.kernel, "hwy:elementwise");
        testing::expect_close(run.outs[0], evaluate(*op, ins, {})[0], {0, 0});
      }
    }
  }
}

/// What is cut: the factor that leaves the least in f32, with sums of what lacks it.
TEST(Blocks, LeaveTheLeast) {
  struct Row {
    const char* name;
    const OpDef* op;
    Attrs attrs;
    TensorTypes ins;
    std::int64_t length, count;
    std::vector<int> in_dims, out_dims;
  };
  const auto bf16 = [](Shape shape) { return TensorType{DType::BF16, std::move(shape), {}}; };
  const Row rows[] = {
      {"logits",
       &kMatmul,
       {std::string("t d, v d -> t v")},
       {bf16({16, 8}), bf16({1000, 8})},
       41,
       25,
       {-1, 0},
       {1}},
      {"of x",
       &kMatmul,
       {std::string("t v, v d -> t d")},
       {bf16({16, 1000}), bf16({1000, 8})},
       41,
       25,
       {1, 0},
       {-1}},
      {"of the weight",
       &kMatmul,
       {std::string("t v, t d -> v d"), DType::F32},
       {bf16({16, 1000}), bf16({16, 8})},
       62,
       17,
       {1, -1},
       {0}},
      {"small",
       &kMatmul,
       {std::string("t d, v d -> t v")},
       {bf16({4, 8}), bf16({8, 8})},
       1,
       1,
       {-1, -1},
       {-1}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    OpCall::Types ins, outs;
    for (const TensorType& type : row.ins) ins.push_back(&type);
    const TensorTypes results = row.op->infer(OpCall(*row.op, ins, row.attrs));
    for (const TensorType& type : results) outs.push_back(&type);
    const cpu::Blocks blocks =
        cpu::blocks_of({OpCall(*row.op, ins, row.attrs, outs), {}, {}, {}}, 4096);
    EXPECT_EQ(blocks.length, row.length);
    EXPECT_EQ(blocks.count(), row.count);
    EXPECT_EQ(blocks.ins, row.in_dims);
    EXPECT_EQ(blocks.outs, row.out_dims);
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

/// Norms of rows that are computed some together, and of a rest of them: the bits of f32, rounded.
TEST(SixteenBits, NormsOfManyRowsHaveTheBitsOfF32Rounded) {
  const std::unique_ptr<Device> device = make_cpu_device({2, -1});
  const auto near = [](DType dtype, const Shape& shape, std::uint64_t seed) {
    return random_tensor(DType::F32, shape, seed).cast(dtype);
  };
  for (const DType dtype : {DType::BF16, DType::F16}) {
    for (const std::int64_t n : {48, 64, 128, 200, 256, 272, 768}) {
      SCOPED_TRACE(text(dtype, ", rows of ", n));
      const Shape shape = {23, n}, row = {n}, statistic = {23, 1};
      const Tensors forward = {near(dtype, shape, 1), near(dtype, row, 2), near(dtype, row, 3)};
      const Tensors backward = {near(dtype, shape, 4), near(dtype, shape, 1), near(dtype, row, 2),
                                near(DType::F32, statistic, 5), near(DType::F32, statistic, 6)};
      const auto check = [&](const OpDef& op, const Attrs& attrs, const Tensors& ins) {
        Tensors wide;
        for (const HostTensor& in : ins) wide.push_back(in.cast(DType::F32));
        const auto run = [&](const Tensors& operands) {
          return testing::run_kernel(*device, op, attrs, operands,
                                     testing::result_types(op, attrs, operands));
        };
        const testing::KernelRun narrow = run(ins), in_f32 = run(wide);
        EXPECT_EQ(narrow.kernel, "hwy:rows");
        for (std::size_t i = 0; i < narrow.outs.size(); ++i) {
          SCOPED_TRACE(text(op.name, ", result ", i));
          testing::expect_close(narrow.outs[i], in_f32.outs[i].cast(narrow.outs[i].dtype()), {});
        }
      };
      check(kLayerNorm, {1e-5}, forward);
      check(kRmsNorm, {1e-5}, {forward[0], forward[1]});
      check(kLayerNormGrad, {true}, backward);
      check(kRmsNormGrad, {}, {backward[0], backward[1], backward[2], backward[4]});
    }
  }
}

}  // namespace tessera::test
