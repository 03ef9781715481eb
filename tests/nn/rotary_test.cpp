/// Rotary positions of self-attention: which channels turn, and by the rates of which length.

#include <gtest/gtest.h>

#include "tessera/nn/transformer.h"
#include "tessera/ops/attention.h"

namespace tessera {
namespace {

constexpr std::int64_t kQueries = 6, kContext = 9, kWidth = 24;

/// The attributes of what turns queries and keys, of two heads of 12 channels.
std::vector<Attrs> rotations(const Rotary& rotary, bool caches) {
  Builder builder;
  const Value x = builder.batch("x", {DType::F32, {2, kQueries, kWidth}, {}});
  TransformerLayer layer{.heads = 2, .rotary = true, .rope = rotary};
  Pass pass;
  if (caches) {
    pass.position = builder.batch("position", {DType::I32, {}, {}});
    pass.context = kContext;
    pass.room = kContext + kQueries - 1;
  }
  builder.output(Output::Kind::Metric, "y", self_attention(x, layer, {.causal = true}, pass));
  std::vector<Attrs> out;
  for (const Node& node : builder.so_far().nodes()) {
    if (node.op == &kRope) out.push_back(node.attrs);
  }
  return out;
}

TEST(Rotary, OfSelfAttention) {
  const Rotary plain{.base = 500};
  const Rotary yarn{.share = 0.5,
                    .scaling = {.kind = RotaryKind::Yarn, .factor = 4, .original_length = 4}};
  const Rotary dynamic{.scaling = {.kind = RotaryKind::Dynamic, .factor = 2, .original_length = 5}};
  const Rotary longrope{.scaling = {.kind = RotaryKind::LongRope,
                                    .factor = 2,
                                    .original_length = 8,
                                    .short_factor = {1, 1, 1, 2, 2, 2},
                                    .long_factor = {1, 1, 2, 2, 3, 3}}};
  for (const Rotary& rotary : {plain, yarn, dynamic, longrope}) {
    SCOPED_TRACE(to_text(rotary.scaling.kind));
    for (const bool caches : {false, true}) {
      const RotaryRates rates = rotary_rates(rotary, 12, caches ? kContext : kQueries);
      const Attrs want{rates.rates, rates.factor, false};
      EXPECT_EQ(rotations(rotary, caches), (std::vector<Attrs>{want, want}));
    }
  }
  for (const Rotary& rotary : {dynamic, longrope})
    EXPECT_NE(rotations(rotary, false), rotations(rotary, true));
}

}  // namespace
}  // namespace tessera
