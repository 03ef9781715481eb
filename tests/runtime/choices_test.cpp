/// Ranks on unlike machines make their devices from one value.

#include "tessera/runtime/choices.h"

#include <gtest/gtest.h>

#include <vector>

#include "tessera/comm/local.h"

namespace tessera {
namespace {

TEST(Choices, TheLowestLevelAndTheRestOfRankZero) {
  const struct {
    const char* why;
    std::vector<CpuChoices> ranks;
    CpuChoices all;
  } cases[] = {
      {"alike", {{Isa::Amx, true}, {Isa::Amx, true}}, {Isa::Amx, true}},
      {"a lesser machine follows", {{Isa::Amx, true}, {Isa::Avx2, false}}, {Isa::Avx2, true}},
      {"a lesser machine leads", {{Isa::Avx2, false}, {Isa::Amx, true}}, {Isa::Avx2, false}},
      {"the least of three is neither the first nor the last",
       {{Isa::Avx512Bf16, false}, {Isa::Avx512, true}, {Isa::Amx, true}},
       {Isa::Avx512, false}},
      {"f32 products as on rank 0",
       {{Isa::Amx, true, F32Products::Fma}, {Isa::Amx, true, F32Products::Amx}},
       {Isa::Amx, true, F32Products::Fma}},
      {"f32 products by AMX, as on rank 0",
       {{Isa::Amx, true, F32Products::Amx}, {Isa::Amx, true, F32Products::Fma}},
       {Isa::Amx, true, F32Products::Amx}},
      {"f32 products that one rank cannot make",
       {{Isa::Amx, true, F32Products::Amx}, {Isa::Avx512, true}},
       {Isa::Avx512, true, F32Products::Fma}},
      {"one without any level", {{Isa::Amx, true}, {Isa::Baseline, true}}, {Isa::Baseline, true}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.why);
    std::vector<CpuChoices> got(c.ranks.size());
    run_ranks(static_cast<int>(c.ranks.size()), [&](Communicator& world) {
      const auto rank = static_cast<std::size_t>(world.rank());
      got[rank] = common_choices(c.ranks[rank], &world);
    });
    for (const CpuChoices& choices : got) EXPECT_EQ(choices, c.all);
  }
  EXPECT_EQ(common_choices({Isa::Avx512, true}, nullptr), (CpuChoices{Isa::Avx512, true}));
}

}  // namespace
}  // namespace tessera
