/// Bodies that work row by row, as one pass: norms and their gradients, dropout, sums over rows,
/// between elementwise ops.

#include <set>

#include "device/vector_test.h"
#include "tessera/device/cpu/vector_families.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/fused.h"
#include "tessera/ops/norm.h"
#include "tessera/ops/random.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/table.h"

namespace tessera {

namespace {

using testing::random_tensor;

const testing::Tolerance kRounding{2e-5, 2e-5};  // of rows of some hundred numbers, f32 against f64

/// A body with the operands that it reads.
class RowsBody {
 public:
  Value in(DType dtype, const Shape& shape, double low = -1, double high = 1) {
    ins.push_back(random_tensor(dtype, shape, 7 + ins.size(), low, high));
    return builder.batch(text(ins.size() - 1), ins.back().type());
  }
  Value in(const Shape& shape) { return in(dtype, shape); }
  void out(Value value) { builder.output(Output::Kind::Metric, text(results++), value); }
  Attrs attrs() { return {std::make_shared<const Graph>(builder.finish())}; }

  DType dtype = DType::F32;  // of the model's values
  Builder builder;
  std::vector<HostTensor> ins;
  int results = 0;
};

/// The end of a sublayer: residual + dropout(h + bias), and its norm.
void forward(RowsBody& b, const Shape& shape, const Shape& row, bool centered) {
  const Value h = b.in(shape), bias = b.in(row), residual = b.in(shape), weight = b.in(row);
  const Value step = b.in(DType::I64, {}, 3, 4);
  const Value x = residual + dropout(h + bias, step, 0.3, "drop");
  b.out(x);
  if (centered) {
    const LayerNormResult norm = layer_norm(x, weight, b.in(row));
    b.out(norm.y), b.out(norm.mean), b.out(norm.rstd);
  } else {
    const RmsNormResult norm = rms_norm(x, weight);
    b.out(norm.y), b.out(norm.rstd);
  }
}

/// Its gradient: of the norm, of the residual stream, of dropout and of the bias.
void backward(RowsBody& b, const Shape& shape, const Shape& row, bool centered, bool bias) {
  Shape statistic = shape;
  for (int d = shape.ndim() - row.ndim(); d < shape.ndim(); ++d) statistic[d] = 1;
  const Value dy = b.in(shape), x = b.in(shape), weight = b.in(row), stream = b.in(shape);
  const Value rstd = b.in(DType::F32, statistic, 0.5, 2);
  std::vector<Value> grad;
  if (centered) {
    const Value mean = b.in(DType::F32, statistic);
    grad = b.builder.add_all(kLayerNormGrad, {dy * 0.5, x, weight, mean, rstd}, {bias});
  } else {
    grad = b.builder.add_all(kRmsNormGrad, {dy * 0.5, x, weight, rstd});
  }
  const Value stream_grad = stream + grad[0];
  const Value dropped = dropout(stream_grad, b.in(DType::I64, {}, 3, 4), 0.3, "drop");
  std::vector<std::int64_t> lead;
  for (int d = 0; d < shape.ndim() - row.ndim(); ++d) lead.push_back(d);
  b.out(stream_grad), b.out(dropped);
  b.out(sum(dropped, lead));
  for (std::size_t i = 1; i < grad.size(); ++i) b.out(grad[i]);
}

struct RowsCase {
  const char* why;
  Shape shape, row;
};
const RowsCase kRowsCases[] = {
    {"several rows in a tile, a last tile that is not full", {5, 67, 24}, {24}},
    {"a row is a tile", {3, 41, 768}, {768}},
    {"a row is longer than tiles are elsewhere", {9, 5003}, {5003}},
    {"rows of two dims", {37, 6, 50}, {6, 50}},
    {"short rows of whole vectors, some of which are computed together", {5, 67, 128}, {128}},
    {"short rows with a rest", {7, 200}, {200}},
    {"rows of one number", {700, 1}, {1}},
    {"one row", {1, 33}, {33}},
    {"a vector and one number", {70, 17}, {17}},
    {"no rows", {0, 16}, {16}},
};

TEST(FusedRows, ForwardEqualsTheReference) {
  for (const RowsCase& c : kRowsCases) {
    for (const bool centered : {true, false}) {
      SCOPED_TRACE(text(c.why, centered ? ", layer_norm" : ", rms_norm"));
      RowsBody body;
      forward(body, c.shape, c.row, centered);
      const Attrs attrs = body.attrs();
      testing::expect_vector("hwy:rows", kFused, attrs, body.ins, kRounding);
      testing::expect_vector("hwy:rows", kFused, attrs, body.ins, kRounding, testing::in_place(0));
      testing::expect_vector("hwy:rows", kFused, attrs, body.ins, kRounding, testing::in_place(2));
    }
  }
}

TEST(FusedRows, BackwardEqualsTheReference) {
  for (const RowsCase& c : kRowsCases) {
    for (const int kind : {0, 1, 2}) {
      SCOPED_TRACE(text(c.why, ", kind ", kind));
      RowsBody body;
      backward(body, c.shape, c.row, kind > 0, kind > 1);
      // Sums over thousands of rows: as many roundings.
      const testing::Tolerance tolerance{2e-5, 2e-4};
      const Attrs attrs = body.attrs();
      testing::expect_vector("hwy:rows", kFused, attrs, body.ins, tolerance);
      for (const int operand : {0, 1, 3}) {
        testing::expect_vector("hwy:rows", kFused, attrs, body.ins, tolerance,
                               testing::in_place(operand));
      }
    }
  }
}

/// Values of 16 bits are rounded inside as they are between ops. The baseline draws other words for
/// a mask a few at a time: also where tiles begin within a block of them.
TEST(FusedRows, SixteenBitsHaveTheBitsOfTheOps) {
  for (const DType dtype : {DType::F32, DType::BF16, DType::F16}) {
    for (const RowsCase& c : kRowsCases) {
      for (const int kind : {0, 1, 2}) {
        SCOPED_TRACE(text(c.why, ", kind ", kind, ", ", dtype));
        RowsBody first, second;
        first.dtype = second.dtype = dtype;
        forward(first, c.shape, c.row, kind > 0);
        const Attrs attrs = first.attrs();
        testing::expect_bits_of_ops("hwy:rows", attrs, first.ins);
        testing::expect_bits_of_ops("hwy:rows", attrs, first.ins, testing::in_place(2));
        backward(second, c.shape, c.row, kind > 0, kind > 1);
        const Attrs back = second.attrs();
        testing::expect_bits_of_ops("hwy:rows", back, second.ins);
        testing::expect_bits_of_ops("hwy:rows", back, second.ins, testing::in_place(3));
      }
    }
  }
}

/// The body of a fused op in 16 bits computes what the reference does, but for results that fall on
/// the other side between two numbers: each op's may, and does so in the next ones.
TEST(FusedRows, SixteenBitsAreNearTheReference) {
  for (const auto& [dtype, neighbour] : {std::pair{DType::BF16, 0x1p-7}, {DType::F16, 0x1p-10}}) {
    for (const RowsCase& c : kRowsCases) {
      SCOPED_TRACE(text(c.why, ", ", dtype));
      RowsBody body;
      body.dtype = dtype;
      forward(body, c.shape, c.row, true);
      const Attrs attrs = body.attrs();
      const TensorTypes types = testing::result_types(kFused, attrs, body.ins);
      const std::unique_ptr<Device> device = make_cpu_device({2, -1});
      testing::ReferenceDevice reference;
      const auto fast = testing::run_kernel(*device, kFused, attrs, body.ins, types);
      const auto slow = testing::run_kernel(reference, kFused, attrs, body.ins, types);
      EXPECT_EQ(fast.kernel, "hwy:rows");
      for (std::size_t i = 0; i < types.size(); ++i)
        testing::expect_close(fast.outs[i], slow.outs[i], {3 * neighbour, 3 * neighbour});
    }
  }
}

/// A cast beside a norm, either way: its weight is of the dtype that the norm computes in.
TEST(FusedRows, CastsBesideANorm) {
  for (const DType dtype : {DType::BF16, DType::F16}) {
    SCOPED_TRACE(text(dtype));
    RowsBody body;
    const Shape shape{3, 41, 768};
    const Value x = body.in(dtype, shape), more = body.in(DType::F32, shape),
                weight = body.in(DType::F32, {768});
    const Value wide = cast(x, DType::F32) + more;
    const RmsNormResult norm = rms_norm(wide, weight);
    body.out(cast(norm.y, dtype)), body.out(cast(wide, dtype)), body.out(norm.rstd);
    const Attrs attrs = body.attrs();
    testing::expect_bits_of_ops("hwy:rows", attrs, body.ins);
    testing::expect_bits_of_ops("hwy:rows", attrs, body.ins, testing::in_place(0));
  }
}

/// A sum that is asked for in 16 bits is rounded once, when all rows are in.
TEST(FusedRows, ASumInSixteenBits) {
  for (const DType dtype : {DType::BF16, DType::F16}) {
    SCOPED_TRACE(text(dtype));
    RowsBody body;
    const Value x = body.in(dtype, {300, 40}), y = body.in(dtype, {300, 40});
    const Value z = x * y;
    body.out(z), body.out(sum(z, {0}));
    testing::expect_bits_of_ops("hwy:rows", body.attrs(), body.ins);
  }
}

/// Sums over rows too: on any number of threads, in a body or alone.
TEST(FusedRows, BitsAreTheSameOnAnyThreadsAndAlone) {
  const Shape shape{5, 401, 64};
  RowsBody body;
  const Value dy = body.in(shape), x = body.in(shape), weight = body.in({64}),
              mean = body.in({5, 401, 1}), rstd = body.in(DType::F32, {5, 401, 1}, 0.5, 2);
  const std::vector<Value> grad =
      body.builder.add_all(kLayerNormGrad, {dy, x, weight, mean, rstd}, {true});
  body.out(grad[0] + x);
  body.out(grad[1]), body.out(grad[2]), body.out(sum(x, {0, 1}));
  const Attrs attrs = body.attrs();
  const auto run = [](int threads, const OpDef& op, const Attrs& of,
                      const std::vector<HostTensor>& ins) {
    testing::VectorDevice device(threads);
    return testing::run_kernel(device, op, of, ins, testing::result_types(op, of, ins)).outs;
  };
  const auto same = [](const HostTensor& a, const HostTensor& b) {
    return std::ranges::equal(a.bytes(), b.bytes());
  };
  const std::vector<HostTensor> one = run(1, kFused, attrs, body.ins);
  for (const int threads : {2, 3, 7}) {
    const std::vector<HostTensor> fused = run(threads, kFused, attrs, body.ins);
    for (std::size_t i = 0; i < one.size(); ++i)
      EXPECT_TRUE(same(fused[i], one[i])) << threads << " threads, result " << i;
    const std::vector<HostTensor> alone = run(threads, kLayerNormGrad, {true}, body.ins);
    EXPECT_TRUE(same(alone[1], one[1])) << threads;
    EXPECT_TRUE(same(alone[2], one[2])) << threads;
    const Attrs rows = {std::vector<std::int64_t>{0, 1}, false};
    EXPECT_TRUE(same(run(threads, kSum, rows, {body.ins[1]})[0], one[3])) << threads;
  }
}

/// Result 0 is a statistic, and lies where another one is read afterwards.
TEST(FusedRows, AStatisticOverAStatistic) {
  RowsBody body;
  const Value x = body.in({90, 40}), weight = body.in({40}), old = body.in({90, 1});
  const RmsNormResult norm = rms_norm(x, weight);
  body.out(norm.rstd);
  body.out(norm.y * old);
  testing::expect_vector("hwy:rows", kFused, body.attrs(), body.ins, kRounding,
                         testing::in_place(2));
}

/// Operands at strides, and one that is broadcast along rows.
TEST(FusedRows, StridedOperands) {
  RowsBody body;
  const Value x = body.in({6, 30, 40}), per_row = body.in({6, 1, 1}), weight = body.in({40});
  const Value y = x * per_row;
  const LayerNormResult norm = layer_norm(y, weight, {});
  body.out(y), body.out(norm.y), body.out(norm.mean), body.out(norm.rstd);
  testing::expect_vector("hwy:rows", kFused, body.attrs(), body.ins, kRounding,
                         testing::strided({{50, 300, 1}, {}, {}}));
}

/// The mask is that of the place in the whole tensor, in each micro-batch, as the op alone draws
/// it.
TEST(FusedRows, DropoutKnowsItsPlace) {
  const Shape shape{3, 5, 16};
  RowsBody body;
  const Value x = body.in(shape), step = body.in(DType::I64, {}, 3, 4);
  const Value y = dropout(x * 2.0, step, 0.5, "drop");
  const RmsNormResult norm = rms_norm(y, body.in({16}));
  body.out(y), body.out(norm.rstd);
  const Attrs attrs = body.attrs();
  const ShardInfo shard{{12, 11, 16}, {3, 5, 0}, {6, 0, 0}, {12, 11, 16}, shape};
  const ShardInfo rows{{12, 11, 1}, {3, 5, 0}, {6, 0, 0}, {12, 11, 1}, {3, 5, 1}};
  const ShardInfo scalar, weight{{16}, {0}, {0}, {16}, {16}};
  for (const std::int64_t microbatch : {0, 1}) {
    testing::KernelSetting setting;
    setting.ins = {shard, scalar, weight};
    setting.outs = {shard, rows};
    setting.microbatch = microbatch;
    setting.seed = 5;
    const TensorTypes types = testing::result_types(kFused, attrs, body.ins);
    testing::VectorDevice device(2);
    testing::ReferenceDevice reference;
    const auto fast = testing::run_kernel(device, kFused, attrs, body.ins, types, setting);
    const auto slow = testing::run_kernel(reference, kFused, attrs, body.ins, types, setting);
    EXPECT_EQ(fast.kernel, "hwy:rows");
    testing::expect_close(fast.outs[0], slow.outs[0], kRounding);
    HostTensor doubled(DType::F32, shape);
    for (std::int64_t i = 0; i < doubled.numel(); ++i) doubled.set(i, 2 * body.ins[0].at(i));
    testing::KernelSetting alone = setting;
    alone.ins = {shard, scalar}, alone.outs = {shard};
    const Attrs drop = {0.5, std::string("drop")};
    const auto one = testing::run_kernel(device, kDropout, drop, {doubled, body.ins[1]},
                                         {doubled.type()}, alone);
    testing::expect_close(fast.outs[0], one.outs[0], {});
    int kept = 0;
    for (std::int64_t i = 0; i < doubled.numel(); ++i) kept += fast.outs[0].at(i) != 0;
    EXPECT_GT(kept, 80);
    EXPECT_LT(kept, 160) << "half of 240";
  }
}

/// Each op that a body may hold row by row has a function here: else a fused node would run in the
/// reference loops.
TEST(FusedRows, EveryRowOpHasAFunction) {
  std::set<const OpDef*> asked;
  for (const bool centered : {true, false}) {
    for (const bool gradient : {true, false}) {
      RowsBody body;
      if (gradient) {
        backward(body, {3, 5, 16}, {16}, centered, centered);
      } else {
        forward(body, {3, 5, 16}, {16}, centered);
      }
      const Attrs attrs = body.attrs();
      const Graph& graph = *std::get<std::shared_ptr<const Graph>>(attrs[0]);
      for (NodeId id = 0; id < graph.size(); ++id) {
        const OpCall call = graph.call(id);
        if (row_dims_of(call) == 0) continue;
        EXPECT_NE(cpu::row_tiling(call).function, nullptr) << call.op().name;
        asked.insert(&call.op());
      }
    }
  }
  for (const OpDef* op : all_ops())
    EXPECT_EQ(asked.contains(op), op->row_dims != nullptr)
        << op->name << ": give it a call in `forward` or `backward`";
}

}  // namespace

}  // namespace tessera
