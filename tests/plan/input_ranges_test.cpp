/// Which numbers programs take of their inputs.

#include "tessera/plan/input_ranges.h"

#include <gtest/gtest.h>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/softmax.h"

namespace tessera {
namespace {

TensorType numbers(Shape shape) { return {DType::I32, std::move(shape), {}}; }
TensorType reals(Shape shape) { return {DType::F32, std::move(shape), {}}; }
/// Rows of a table of 7.
Value rows_of(Value ids) {
  return gather(ids, ids.builder().state("table", reals({7, 5}), Role::Parameter, {}));
}

}  // namespace

TEST(InputRanges, OfLabelsAndIds) {
  Builder b;
  const Value ids = b.batch("ids", numbers({2, 4})), labels = b.batch("labels", numbers({2, 4})),
              counts = b.batch("counts", numbers({2, 4})), logits = b.batch("x", reals({2, 4, 5}));
  const Value rows = rows_of(ids);
  b.output(Output::Kind::Metric, "loss", sum_all(cross_entropy(rows + logits, labels).loss));
  b.output(Output::Kind::Metric, "counted", sum_all(cast(counts, DType::F32)));
  const InputRanges ranges = input_ranges(b.finish());
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges.at("ids"), (InputRange{7, {}, "ids of the table 'table' of 7 rows"}));
  EXPECT_EQ(ranges.at("labels"),
            (InputRange{5, kIgnoredLabel, "labels of a cross_entropy over 5 classes"}));
}

TEST(InputRanges, OfPartsAndOfSeveralReaders) {
  Builder b;
  const Value text = b.batch("text", numbers({2, 5})), x = b.batch("x", reals({8, 5})),
              y = b.batch("y", reals({8, 3})), made = b.batch("made", numbers({8}));
  const Value rows = rows_of(slice(text, 1, 0, 4));
  const Value next = reshape(slice(text, 1, 1, 4), {8});
  b.output(Output::Kind::Metric, "a", sum_all(cross_entropy(x, next, -7).loss));
  b.output(Output::Kind::Metric, "b", sum_all(cross_entropy(y, made).loss));
  b.output(Output::Kind::Metric, "c", sum_all(cross_entropy(x, made).loss));
  // Tables that are computed, and what is computed of an input, take all numbers.
  const Value free = b.batch("free", numbers({8}));
  b.output(Output::Kind::Metric, "d", sum_all(gather(free, x)));
  b.output(Output::Kind::Metric, "e",
           sum_all(cross_entropy(x, maximum(free, b.constant(0, DType::I32))).loss));
  b.output(Output::Kind::Metric, "f", sum_all(rows));
  const InputRanges ranges = input_ranges(b.finish());
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges.at("text").values, 5);
  EXPECT_EQ(ranges.at("text").ignored, -7);
  EXPECT_EQ(ranges.at("made").values, 3);
}

/// A script that rolls its ids thirty times reads each twice: 2^30 paths lead to them.
TEST(InputRanges, OfValuesThatAreReadTwiceAgainAndAgain) {
  Builder b;
  Value ids = b.batch("ids", numbers({8}));
  for (int turn = 0; turn < 30; ++turn) ids = concat({slice(ids, 0, 1, 7), slice(ids, 0, 0, 1)}, 0);
  b.output(Output::Kind::Metric, "loss", sum_all(rows_of(ids)));
  EXPECT_EQ(input_ranges(b.finish()).at("ids").values, 7);
}

}  // namespace tessera
