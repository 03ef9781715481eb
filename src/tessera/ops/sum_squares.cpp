#include "tessera/ops/sum_squares.h"

#include "tessera/ops/elementwise.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/reference.h"

namespace tessera {

namespace {

template <typename T>
void sum_squares_reference(RefCall& c) {
  const T* x = c.in<T>(0);
  double total = 0;
  for (std::int64_t i = 0, n = c.in_shape(0).numel(); i < n; ++i)
    total += static_cast<double>(x[i]) * x[i];
  *c.out<T>(0) = static_cast<T>(total);
}

}  // namespace

constinit const OpDef kSumSquares = {
    .name = "sum_squares",
    .doc = "Sum of x^2 over all elements: the square of a norm. Of 16-bit floats it is an f32.",
    .infer = [](const OpCall& c) -> TensorTypes {
      require(is_float(c.in(0).dtype), "sum_squares: operand is ", c.in(0),
              "; cast it to f32 first");
      return {{computed_in(c.in(0).dtype), {}, {}}};
    },
    .factors = [](const OpCall& c) -> Factors { return Factors::parse("... ->", c.ndims()); },
    .grad = [](GradCall& g) -> void { g.din(0) = g.in(0) * (g.dout(0) * 2.0); },
    .flops = [](const OpCall& c) -> double { return 2.0 * static_cast<double>(c.in(0).numel()); },
    .reference = {sum_squares_reference<float>, sum_squares_reference<double>},
    .arithmetic = Arithmetic::FromAny,
};

Value sum_squares(Value x) { return x.builder().add(kSumSquares, {x}); }

}  // namespace tessera
