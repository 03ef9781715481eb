#include <random>

#include "device/vector_test.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/fused.h"
#include "tessera/ops/reduce.h"

namespace tessera {

namespace {

using testing::random_tensor;

/// Random programs: any mix of operands (whole, repeated along some dims, scalars, exchanged dims),
/// values of three widths, or, of every second seed, four, that live for any time, several results,
/// some of them operands or constants.
class RandomBody {
 public:
  explicit RandomBody(unsigned seed) : random_(seed), has_16_bit_(seed % 2 == 0) {
    const int ndim = below(4);
    for (int d = 0; d < ndim; ++d) shape_.push_back(pick({1, 2, 3, 7, 16, 64, 130, 600}));
    while (shape_.numel() > 200'000) shape_[below(ndim)] = 3;
    if (below(3) == 0 && ndim > 0)
      shape_[ndim - 1] = 2100 + below(3000);  // rows longer than a tile
    while (shape_.numel() > 400'000) shape_[below(ndim - 1)] = 2;
    operands();
    steps();
    results();
  }

  void check() {
    const Attrs attrs = {std::make_shared<Graph>(builder_.finish())};
    testing::KernelSetting setting;
    setting.strides = strides_;
    if (in_place_ >= 0 && below(2) == 0) setting.in_place = in_place_;
    testing::expect_bits_of_ops("hwy:elementwise", attrs, ins_, setting);
    if (has_16_bit_) return;
    // A dozen roundings, of numbers of up to some tens.
    testing::expect_vector("hwy:elementwise", kFused, attrs, ins_, {1e-4, 1e-4}, setting);
  }
  std::string description() const { return text(shape_, ", ", ins_.size(), " operands"); }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  std::int64_t pick(std::vector<std::int64_t> from) {
    return from[static_cast<std::size_t>(below(static_cast<int>(from.size())))];
  }

  void operands() {
    const int count = 1 + below(5);
    for (int i = 0; i < count; ++i) {
      const DType dtype = below(4) == 0 ? DType::Bool : below(4) == 0 ? DType::I64 : DType::F32;
      Shape shape = i == 0 ? shape_ : Shape{};  // one operand is whole: the results have its shape
      const int skip = below(shape_.ndim() + 1);
      for (int d = skip; d < shape_.ndim() && i > 0; ++d)
        shape.push_back(below(3) == 0 ? 1 : shape_[d]);
      const DType own = i == 0 || dtype == DType::F32 ? any_float() : dtype;
      ins_.push_back(random_tensor(own, shape, random_(), -2, 2));
      values_.push_back(builder_.batch(text(i), ins_.back().type()));
      Shape strides = shape.strides();
      if (below(4) == 0 && shape.ndim() >= 2) {  // the first two dims lie exchanged
        strides[0] = shape.numel() / shape[0] / shape[1];
        strides[1] = strides[0] * shape[0];
      } else if (shape == shape_) {
        dense_.push_back(i);
      }
      strides_.push_back(strides);
    }
  }

  Value any() { return values_[static_cast<std::size_t>(below(static_cast<int>(values_.size())))]; }
  DType any_float() {
    return !has_16_bit_ || below(3) == 0 ? DType::F32 : below(2) == 0 ? DType::BF16 : DType::F16;
  }
  Value any_in(DType dtype) { return cast(any(), dtype); }

  void steps() {
    for (int i = 0, count = 1 + below(12); i < count; ++i) {
      const DType d = any_float();
      switch (below(9)) {
        case 0: values_.push_back(any_in(d) + any_in(d)); break;
        case 1: values_.push_back(any_in(d) * tanh(any_in(d))); break;
        case 2: values_.push_back(select(any_in(DType::Bool), any_in(d), any_in(d))); break;
        case 3: values_.push_back(sigmoid(any_in(d)) * 3.1); break;
        case 4: values_.push_back(builder_.constant(0.3, d) - any_in(d)); break;
        case 5: values_.push_back(cast(logical_not(any_in(DType::Bool)), DType::I64)); break;
        case 6: values_.push_back(broadcast_to(any_in(d), shape_)); break;
        case 7: values_.push_back(less(any_in(d), any_in(d))); break;
        default: values_.push_back(relu(any_in(d))); break;
      }
    }
    // Every operand must be read.
    Value all = cast(values_[0], DType::F32);
    for (std::size_t i = 1; i < ins_.size(); ++i) all = all + cast(values_[i], DType::F32);
    values_.push_back(all);
  }

  void results() {
    const DType first = any_float();
    builder_.output(Output::Kind::Metric, "r0", broadcast_to(any_in(first), shape_));
    for (const int i : dense_) {
      if (ins_[static_cast<std::size_t>(i)].dtype() == first) in_place_ = i;
    }
    builder_.output(Output::Kind::Metric, "r1", values_.back());
    for (int i = 0; i < below(3); ++i) {
      builder_.output(Output::Kind::Metric, text("r", i + 2), broadcast_to(any(), shape_));
    }
  }

  std::mt19937 random_;
  bool has_16_bit_;
  Shape shape_;
  Builder builder_;
  std::vector<HostTensor> ins_;
  std::vector<Shape> strides_;
  std::vector<Value> values_;
  std::vector<int> dense_;  // operands that lie as the results do
  int in_place_ = -1;
};

TEST(VectorProgram, RandomBodies) {
  for (unsigned seed = 1; seed <= 120 && !::testing::Test::HasFailure(); ++seed) {
    RandomBody body(seed);
    SCOPED_TRACE(text("seed ", seed, ": ", body.description()));
    body.check();
  }
}

}  // namespace

}  // namespace tessera
