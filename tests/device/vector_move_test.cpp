#include "device/vector_test.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/dynamic_update.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/reference.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

namespace {

using testing::expect_vector;
using testing::in_place;
using testing::KernelSetting;
using testing::random_tensor;
using testing::strided;
using Dims = std::vector<std::int64_t>;

constexpr std::string_view kCopy = "cpu:copy";

TEST(VectorMove, Reshape) {
  const HostTensor x = random_tensor(DType::F32, {6, 4, 50}, 1);
  expect_vector(kCopy, kReshape, {Dims{24, 50}}, {x}, {});
  expect_vector(kCopy, kReshape, {Dims{24, 50}}, {x}, {}, in_place(0));
  expect_vector(kCopy, kReshape, {Dims{6, 200}}, {x}, {},
                strided({{50, 300, 1}}));  // dims exchanged
  expect_vector(kCopy, kReshape, {Dims{200'000}}, {random_tensor(DType::F32, {400, 500}, 1)}, {});
}

TEST(VectorMove, Transpose) {
  struct Case {
    Shape shape;
    Dims permutation;
  };
  const Case cases[] = {
      {{1, 1}, {1, 0}},
      {{5, 70}, {1, 0}},
      {{301, 403}, {1, 0}},
      {{2, 9, 3, 16}, {0, 2, 1, 3}},  // heads before positions
      {{2, 9, 3, 16}, {0, 2, 3, 1}},
      {{4, 5, 6, 7}, {3, 2, 1, 0}},
      {{4, 1, 6, 7}, {2, 1, 0, 3}},
      {{33}, {0}},
      {{0, 3}, {1, 0}},
  };
  for (const Case& c : cases) {
    for (const DType dtype : {DType::F32, DType::I64, DType::Bool}) {
      SCOPED_TRACE(text(c.shape, " ", AttrValue(c.permutation)));
      expect_vector(kCopy, kTranspose, {c.permutation}, {random_tensor(dtype, c.shape, 1, -9, 9)},
                    {});
    }
  }
}

TEST(VectorMove, PaddingAlone) {
  struct Case {
    const char* why;
    Shape shape;
    Dims dims;
    ShardInfo shard;  // of the operand
    std::int64_t microbatch;
  };
  const Case cases[] = {
      {"the last row", {40, 30}, {0}, {{79, 30}, {40, 0}, {0, 0}, {79, 30}}, 0},
      {"the last column", {40, 30}, {1}, {{40, 59}, {0, 30}, {0, 0}, {40, 59}}, 0},
      {"rows and columns",
       {7, 40, 30},
       {1, 2},
       {{7, 75, 59}, {0, 40, 30}, {0, 0, 0}, {7, 75, 59}},
       0},
      {"all of it", {3, 4}, {1}, {{3, 8}, {0, 8}, {0, 0}, {3, 8}}, 0},
      {"none of it", {3, 4}, {1}, {{3, 7}, {0, 0}, {0, 0}, {3, 4}}, 0},
      {"of the second micro-batch", {3, 4}, {0}, {{5, 4}, {0, 0}, {3, 0}, {5, 4}}, 1},
      {"not of the first", {3, 4}, {0}, {{5, 4}, {0, 0}, {3, 0}, {5, 4}}, 0},
  };
  testing::ReferenceDevice reference;
  const std::unique_ptr<Device> device = make_cpu_device({2, -1});
  for (const Case& c : cases) {
    for (const DType dtype : {DType::F32, DType::I32, DType::I64, DType::Bool}) {
      for (const char* monoid : {"sum", "max", "min"}) {
        for (const int over : {-1, 0}) {
          SCOPED_TRACE(text(c.why, ", ", to_text(dtype), ", ", monoid, ", in place ", over));
          KernelSetting setting;
          setting.ins = setting.outs = {c.shard};
          setting.microbatch = c.microbatch;
          setting.in_place = over;
          const HostTensor x = random_tensor(dtype, c.shape, 1, -9, 9);
          const Attrs attrs = {c.dims, std::string(monoid)};
          const testing::KernelRun run =
              testing::run_kernel(*device, kClearPadding, attrs, {x}, {x.type()}, setting);
          EXPECT_EQ(run.kernel, "cpu:clear_padding");
          setting.in_place = -1;
          testing::expect_close(
              run.outs[0],
              testing::run_kernel(reference, kClearPadding, attrs, {x}, {x.type()}, setting)
                  .outs[0],
              {});
        }
      }
    }
  }
}

TEST(VectorMove, Windows) {
  constexpr std::int64_t one = 1;
  const HostTensor x = random_tensor(DType::F32, {6, 40, 50}, 1);
  for (const std::int64_t dim : {0, 1, 2}) {
    SCOPED_TRACE(dim);
    for (const std::int64_t start : {0, 1, 3}) {
      expect_vector(kCopy, kSlice, {dim, start, std::int64_t{3}, one}, {x}, {});
      expect_vector(kCopy, kPad, {dim, start, std::int64_t{60}, one}, {x}, {});
      expect_vector(kCopy, kPad, {dim, start, std::int64_t{60}, one}, {x}, {},
                    strided({{50, 300, 1}}));
      for (const std::int64_t step : {2, 5}) {
        const std::int64_t size = 1 + (x.shape()[static_cast<int>(dim)] - 1 - start) / step;
        expect_vector(kCopy, kSlice, {dim, start, size, step}, {x}, {});
        expect_vector(kCopy, kPad, {dim, start, std::int64_t{300}, step}, {x}, {});
      }
    }
    for (const std::int32_t start : {-3, 0, 2, 1000}) {  // clamped to the window
      const HostTensor at = HostTensor::scalar<std::int32_t>(start);
      expect_vector(kCopy, kDynamicSlice, {dim, std::int64_t{3}}, {x, at}, {});
      expect_vector(kCopy, kDynamicSlice, {dim, std::int64_t{3}}, {x, at}, {},
                    strided({{50, 300, 1}, {}}));
      expect_vector(kCopy, kDynamicPad, {dim, std::int64_t{60}}, {x, at}, {});
    }
  }
}

TEST(VectorMove, Updates) {
  constexpr std::string_view kName = "cpu:dynamic_update";
  const HostTensor x = random_tensor(DType::F32, {6, 40, 50}, 1);
  for (const std::int64_t dim : {0, 1, 2}) {
    SCOPED_TRACE(dim);
    for (const std::int64_t size :
         {std::int64_t{1}, std::int64_t{3}, x.shape()[static_cast<int>(dim)]}) {
      Shape shape = x.shape();
      shape[static_cast<int>(dim)] = size;
      const HostTensor update = random_tensor(DType::F32, shape, 2);
      for (const std::int32_t start : {-3, 0, 2, 1000}) {  // clamped to the window
        const std::vector<HostTensor> ins = {x, update, HostTensor::scalar<std::int32_t>(start)};
        expect_vector(kName, kDynamicUpdate, {dim}, ins, {});
        expect_vector(kName, kDynamicUpdate, {dim}, ins, {}, in_place(0));
        const Shape apart = {shape[1] * shape[2] * 3, shape[2] * 3, 1};
        expect_vector(kName, kDynamicUpdate, {dim}, ins, {}, strided({{}, apart, {}}));
      }
    }
  }
  EXPECT_TRUE(cpu::vector_accepts_strides(kDynamicUpdate, 1));
  EXPECT_FALSE(cpu::vector_accepts_strides(kDynamicUpdate, 0));
}

TEST(VectorMove, Concat) {
  for (const int dim : {0, 1, 2}) {
    SCOPED_TRACE(dim);
    std::vector<HostTensor> parts;
    for (const std::int64_t size : {1, 4, 7}) {
      Shape shape = {3, 5, 20};
      shape[dim] = size;
      parts.push_back(random_tensor(DType::F32, shape, static_cast<std::uint64_t>(size)));
    }
    expect_vector(kCopy, kConcat, {std::int64_t{dim}}, parts, {});
  }
  const HostTensor column = random_tensor(DType::F32, {70, 1}, 1);
  expect_vector(kCopy, kConcat, {std::int64_t{1}}, {column, column}, {});  // last dims of size 1
}

TEST(VectorMove, GatherAndScatterAdd) {
  for (const std::int64_t width : {1, 5, 48, 800}) {
    HostTensor ids = random_tensor(DType::I32, {7, 30}, 1, 0, 40);  // repeated
    ids.set(3, -1), ids.set(4, 40);                                 // out of range
    const HostTensor table = random_tensor(DType::F32, {40, width}, 2),
                     dy = random_tensor(DType::F32, {7, 30, width}, 3);
    expect_vector("cpu:gather", kGather, {std::int64_t{0}}, {ids, table}, {});
    expect_vector("cpu:gather", kGather, {std::int64_t{0}},
                  {ids, random_tensor(DType::I64, {40, width}, 2, 0, 9)}, {});
    // Some ten terms per row, in f32.
    const Attrs rows = {std::int64_t{40}, std::int64_t{0}};
    expect_vector("hwy:scatter_add", kScatterAdd, rows, {ids, dy}, {1e-6, 1e-6});
    expect_vector("hwy:scatter_add", kScatterAdd, rows, {ids, dy, table}, {1e-6, 1e-6});
    expect_vector("hwy:scatter_add", kScatterAdd, rows, {ids, dy, table}, {1e-6, 1e-6},
                  testing::in_place(2));
  }
}

TEST(VectorMove, GatherAndScatterAlongAnyDim) {
  const HostTensor ids = random_tensor(DType::I32, {5, 7}, 1, -1, 41);
  for (const auto& [shape, dim] : {std::pair(Shape{40}, 0), std::pair(Shape{300, 40}, 1),
                                   std::pair(Shape{9, 40, 33}, 1), std::pair(Shape{40, 3, 3}, 0)}) {
    SCOPED_TRACE(text(shape, " along ", dim));
    const Attrs along = {std::int64_t{dim}};
    const HostTensor table = random_tensor(DType::F32, shape, 2);
    const HostTensor rows = evaluate(kGather, {ids, table}, along)[0];
    expect_vector("cpu:gather", kGather, along, {ids, table}, {});
    expect_vector("cpu:gather", kGather, along, {ids, random_tensor(DType::Bool, shape, 2, 0, 2)},
                  {});
    expect_vector("hwy:scatter_add", kScatterAdd, {std::int64_t{40}, std::int64_t{dim}},
                  {ids, rows}, {1e-6, 1e-6});
  }
}

TEST(VectorMove, Pick) {
  HostTensor ids = random_tensor(DType::I32, {7, 30}, 1, 0, 40);
  ids.set(3, -1), ids.set(4, 40);  // out of range
  for (const DType dtype : {DType::F32, DType::I64, DType::Bool})
    expect_vector("cpu:pick", kPick, {}, {random_tensor(dtype, {7, 30, 40}, 2, 0, 9), ids}, {});
  testing::VectorDevice device(2);
  for (const DType dtype : {DType::BF16, DType::F16})
    testing::expect_f32_rounded(device, kPick, {}, {random_tensor(dtype, {7, 30, 40}, 2), ids});
}

/// Uneven parts, of a rank and of a micro-batch; what lies beyond the end is not compared.
TEST(VectorMove, ShardOfAWholeValue) {
  struct Case {
    const char* why;
    Shape held, part, offset, step;
    std::int64_t microbatch;
  };
  const Case cases[] = {
      {"rows", {700, 301}, {350, 301}, {350, 0}, {0, 0}, 0},
      {"columns", {301, 700}, {301, 350}, {0, 350}, {0, 0}, 0},
      {"the last part is shorter", {7, 5}, {4, 5}, {4, 0}, {0, 0}, 0},
      {"an empty part", {4, 5}, {2, 5}, {4, 0}, {0, 0}, 0},
      {"both dims", {9, 10}, {5, 4}, {5, 8}, {0, 0}, 0},
      {"of a micro-batch", {12, 5}, {4, 5}, {0, 0}, {4, 0}, 2},
      {"one number", {3}, {1}, {2}, {0}, 0},
  };
  testing::ReferenceDevice reference;
  testing::VectorDevice device(2);
  for (const Case& c : cases) {
    for (const DType dtype : {DType::F32, DType::I64, DType::Bool}) {
      SCOPED_TRACE(text(c.why, ", ", to_text(dtype)));
      const Shape zeros = Shape::of(c.held.ndim(), 0);
      KernelSetting setting;
      setting.ins = {{c.held, zeros, zeros, c.held}};
      setting.outs = {{c.held, c.offset, c.step, c.held}};
      setting.microbatch = c.microbatch;
      const HostTensor x = random_tensor(dtype, c.held, 1, -9, 9);
      const auto run = [&](auto& on) {
        return testing::run_kernel(on, kShard, {std::string("dp"), std::int64_t{0}, Dims{}}, {x},
                                   {{dtype, c.part, {}}}, setting);
      };
      const testing::KernelRun fast = run(device), slow = run(reference);
      EXPECT_EQ(fast.kernel, kCopy);
      for_each_index(c.part, [&](const Shape& at, std::int64_t i) {
        for (int d = 0; d < at.ndim(); ++d) {
          if (c.offset[d] + c.microbatch * c.step[d] + at[d] >= c.held[d]) return;
        }
        EXPECT_EQ(fast.outs[0].at(i), slow.outs[0].at(i)) << text(at);
      });
    }
  }
}

TEST(VectorMove, RowsOfAnotherRankAreZeros) {
  const HostTensor ids = HostTensor::of<std::int32_t>({4}, {3, 5, 6, 7}),
                   rows = random_tensor(DType::F32, {4, 8}, 1);
  KernelSetting setting;  // this rank holds rows 4 ... 7 of 7: the last one is beyond the table
  const ShardInfo shard{{7, 8}, {4, 0}, {0, 0}, {7, 8}}, whole{{4}, {0}, {0}, {4}},
      all{{4, 8}, {0, 0}, {0, 0}, {4, 8}};
  testing::VectorDevice device(2);
  setting.ins = {whole, shard};
  const testing::KernelRun run = testing::run_kernel(
      device, kGather, {std::int64_t{0}}, {ids, rows}, {{DType::F32, {4, 8}, {}}}, setting);
  EXPECT_EQ(run.kernel, "cpu:gather");
  setting.ins = {whole, all};
  setting.outs = {shard};
  const testing::KernelRun sum =
      testing::run_kernel(device, kScatterAdd, {std::int64_t{4}, std::int64_t{0}}, {ids, rows},
                          {{DType::F32, {4, 8}, {}}}, setting);
  for (std::int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(run.outs[0].at(i), 0) << "row 3 is held below";
    EXPECT_EQ(run.outs[0].at(8 + i), rows.at(8 + i)) << "row 5 is the second held";
    EXPECT_EQ(run.outs[0].at(24 + i), 0) << "row 7 does not exist";
    EXPECT_EQ(sum.outs[0].at(8 + i), rows.at(8 + i));
    EXPECT_EQ(sum.outs[0].at(16 + i), rows.at(16 + i));
    EXPECT_EQ(sum.outs[0].at(24 + i), 0);
  }
  const HostTensor columns = random_tensor(DType::F32, {3, 4}, 3);
  const ShardInfo shard_of_columns{{3, 7}, {0, 4}, {0, 0}, {3, 7}};
  const HostTensor named = HostTensor::of<std::int32_t>({3}, {3, 6, 7});
  setting.ins = {shard_of_columns, {{3}, {0}, {0}, {3}}};
  setting.outs = {};
  const testing::KernelRun pick =
      testing::run_kernel(device, kPick, {}, {columns, named}, {{DType::F32, {3}, {}}}, setting);
  EXPECT_EQ(pick.kernel, "cpu:pick");
  EXPECT_EQ(pick.outs[0].at(0), 0) << "column 3 is held below";
  EXPECT_EQ(pick.outs[0].at(1), columns.at(4 + 2)) << "column 6 is the third held";
  EXPECT_EQ(pick.outs[0].at(2), 0) << "column 7 does not exist";
  ShardInfo small = shard;  // of the rows that are stored, two alone are real
  small.room = {2, 8};
  setting.ins = {whole, small};
  setting.outs = {};
  const testing::KernelRun few = testing::run_kernel(
      device, kGather, {std::int64_t{0}}, {ids, rows}, {{DType::F32, {4, 8}, {}}}, setting);
  EXPECT_EQ(few.outs[0].at(8), rows.at(8)) << "row 5 is the second held";
  EXPECT_EQ(few.outs[0].at(16), 0) << "row 6 would be the third";
}

}  // namespace

}  // namespace tessera
