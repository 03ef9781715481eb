/// The order in which pieces of stages start.

#include "tessera/hlo/start_order.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"

namespace tessera::test {

namespace {

using hlo::Piece;
using hlo::Port;
using hlo::Start;

Port handed(Port::Kind kind, const char* name, int to = -1) {
  Port out;
  out.kind = kind;
  out.name = name;
  out.each_microbatch = kind != Port::Kind::Sum;
  out.to = to;
  return out;
}

Piece piece_of(RegionKind region, int chunk, std::vector<Port> arguments,
               std::vector<Port> results) {
  Piece out{region, chunk, 0, {}};
  out.module.arguments = std::move(arguments);
  out.module.results = std::move(results);
  return out;
}

/// Two stages: activations go over and cotangents come back.
std::vector<std::vector<Piece>> two_stages() {
  const Port over = handed(Port::Kind::Message, "over", 1);
  const Port back = handed(Port::Kind::Message, "back", 0);
  const Port kept = handed(Port::Kind::Slot, "kept"), sum = handed(Port::Kind::Sum, "sum");
  return {{piece_of(RegionKind::Begin, 0, {}, {sum}),
           piece_of(RegionKind::Forward, 0, {}, {over, kept}),
           piece_of(RegionKind::Backward, 0, {back, kept, sum}, {sum})},
          {piece_of(RegionKind::Forward, 1, {over}, {kept}),
           piece_of(RegionKind::Backward, 1, {over, kept}, {back})}};
}

constexpr Action kBegin{RegionKind::Begin, 0, 0};
Action forward(int chunk, std::int64_t k) { return {RegionKind::Forward, chunk, k}; }
Action backward(int chunk, std::int64_t k) { return {RegionKind::Backward, chunk, k}; }

/// "0.2@1 (0 1)": piece 2 of stage 0 for micro-batch 1, the last that reads its arguments 0 and 1.
std::string text_of(const Start& start) {
  return text(start.stage, ".", start.piece, "@", start.microbatch, " (", join(start.last, " "),
              ")");
}

}  // namespace

TEST(StartOrder, OfTwoStages) {
  const std::vector<Actions> actions = {
      {kBegin, forward(0, 0), forward(0, 1), backward(0, 0), backward(0, 1)},
      {kBegin, forward(1, 0), backward(1, 0), forward(1, 1), backward(1, 1)}};
  std::vector<std::string> got;
  for (const Start& start : hlo::start_order(two_stages(), actions)) got.push_back(text_of(start));
  EXPECT_EQ(got, (std::vector<std::string>{"0.0@0 ()", "0.1@0 ()", "0.1@1 ()",  //
                                           "1.0@0 ()", "1.1@0 (0 1)",           //
                                           "1.0@1 ()", "1.1@1 (0 1)",           //
                                           "0.2@0 (0 1)", "0.2@1 (0 1 2)"}));
}

TEST(StartOrder, StagesThatWaitForEachOther) {
  const std::vector<Actions> actions = {{kBegin, backward(0, 0), forward(0, 0)},
                                        {kBegin, forward(1, 0), backward(1, 0)}};
  try {
    hlo::start_order(two_stages(), actions);
    FAIL() << "the backward of stage 0 waits for its forward";
  } catch (const Broken& broken) {
    EXPECT_NE(std::string(broken.what()).find("stages wait for each other"), std::string::npos);
  }
}

}  // namespace tessera::test
