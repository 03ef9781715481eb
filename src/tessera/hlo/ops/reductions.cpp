/// Reductions, and products, which are sums too.

#include "tessera/hlo/op_call.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/sum_squares.h"
#include "tessera/tensor/monoid.h"

namespace tessera::hlo {

namespace {

void write_reduce(Writing& w) {
  w.out(w.code.reduce(w.in(0), w.call.integers("dims"), parse_monoid(w.entry.word),
                      w.call.flag("keep")));
}

void write_broadcast(Writing& w) {
  w.out(w.code.broadcast(w.in(0), Shape(w.call.integers("shape"))));
}

void write_sum_squares(Writing& w) {
  std::vector<std::int64_t> dims;
  for (int d = 0; d < w.in(0).ndim(); ++d) dims.push_back(d);
  w.out(w.code.sum(w.in(0) * w.in(0), dims));
}

/// Products of 16-bit floats are summed in f32, onto the third operand where there is one, and
/// rounded once.
void write_matmul(Writing& w) {
  const std::string& rule = w.call.string("rule");
  const Element to = w.result_element(0);
  if (w.num_in() == 2) return w.out(w.code.einsum(rule, w.in(0), w.in(1), to));
  const Value y = w.code.einsum(rule, w.in(0), w.in(1), computed_in(to));
  w.out(w.code.convert(y + w.code.wide(w.in(2)), to));
}

constinit const Emission kReductions[] = {
    {&kSum, write_reduce, "sum", Numbers::Wide},
    {&kMax, write_reduce, "max", Numbers::Wide},
    {&kMin, write_reduce, "min", Numbers::Wide},
    {&kSumSquares, write_sum_squares, "", Numbers::Wide},
    {&kBroadcast, write_broadcast},
};

constinit const Emission kProducts[] = {{&kMatmul, write_matmul}};

}  // namespace

std::span<const Emission> reduction_emissions() { return kReductions; }
std::span<const Emission> product_emissions() { return kProducts; }

}  // namespace tessera::hlo
