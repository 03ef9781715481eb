/// Rows of one number, and of none: what tiles and chunks of rows are then.

#include "device/vector_test.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/norm.h"
#include "tessera/ops/reduce.h"

namespace tessera {

namespace {

using testing::random_tensor;

/// A body, with the operands that it reads.
class NarrowBody {
 public:
  Value in(const Shape& shape, double low = -1) {
    ins.push_back(random_tensor(DType::F32, shape, 3 + ins.size(), low, 1));
    return builder.batch(text(ins.size() - 1), ins.back().type());
  }
  void out(Value value) { builder.output(Output::Kind::Metric, text(results++), value); }
  Attrs attrs() { return {std::make_shared<const Graph>(builder.finish())}; }

  Builder builder;
  std::vector<HostTensor> ins;
  int results = 0;
};

/// A sum over rows is added up in chunks, which follow from the rows alone: not from how many
/// numbers a tile holds, which is another number where there are more ops.
TEST(NarrowRows, SumsHaveTheBitsOfTheOps) {
  for (const Shape& shape : {Shape{40'000, 1}, Shape{200, 201, 1}, Shape{300, 130, 1, 1}}) {
    for (const int ops : {1, 4, 12}) {
      SCOPED_TRACE(text(shape, ", ", ops, " ops"));
      NarrowBody body;
      Value x = body.in(shape);
      for (int i = 0; i < ops; ++i) x = x * body.in(shape, 0.5);
      const int last = shape.ndim() - 1;
      std::vector<std::int64_t> lead;
      for (int d = 0; d < last; ++d) lead.push_back(d);
      body.out(x);
      body.out(sum(x, lead));
      testing::expect_bits_of_ops("hwy:rows", body.attrs(), body.ins);
    }
  }
}

/// Operands that repeat are read row by row too.
TEST(NarrowRows, OperandsRepeat) {
  NarrowBody body;
  const Value x = body.in({70, 600, 1}), column = body.in({600, 1}), one = body.in({1}),
              row = body.in({70, 1, 1});
  const Value y = (x + column) * row - one;
  body.out(y);
  body.out(sum(y, {0, 1}));
  const Attrs attrs = body.attrs();
  testing::expect_bits_of_ops("hwy:rows", attrs, body.ins);
  testing::expect_bits_of_ops("hwy:rows", attrs, body.ins, testing::in_place(0));
  testing::expect_vector("hwy:rows", kFused, attrs, body.ins, {2e-5, 2e-3});  // 42,000 roundings
}

/// Statistics of rows without elements are what the reference loops say, fused or not: the mean of
/// no numbers is none. Sums over such rows have no elements.
TEST(NarrowRows, RowsOfNoElements) {
  for (const bool centered : {true, false}) {
    SCOPED_TRACE(centered ? "layer_norm" : "rms_norm");
    NarrowBody body;
    const Value x = body.in({5, 0}) + body.in({5, 0}), weight = body.in({0});
    if (centered) {
      const LayerNormResult norm = layer_norm(x, weight, body.in({0}));
      body.out(norm.y), body.out(norm.mean), body.out(norm.rstd);
    } else {
      const RmsNormResult norm = rms_norm(x, weight);
      body.out(norm.y), body.out(norm.rstd);
    }
    body.out(sum(x, {0}));
    const Attrs attrs = body.attrs();
    testing::VectorDevice device(2);
    const Graph& graph = *std::get<std::shared_ptr<const Graph>>(attrs[0]);
    const std::vector<HostTensor> ops = testing::one_by_one(device, graph, body.ins);
    const testing::KernelRun fused = testing::run_kernel(
        device, kFused, attrs, body.ins, testing::result_types(kFused, attrs, body.ins));
    ASSERT_EQ(fused.outs.size(), ops.size());
    for (std::size_t i = 1; i + 1 < ops.size(); ++i) {
      for (std::int64_t row = 0; row < 5; ++row) {
        EXPECT_TRUE(std::isnan(ops[i].at(row))) << "result " << i;
        EXPECT_TRUE(std::isnan(fused.outs[i].at(row))) << "result " << i;
      }
    }
  }
}

}  // namespace

}  // namespace tessera
