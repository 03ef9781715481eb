/// A program without the kernels of avx2, as ./dev quickstart compiles it on processors above:
/// compiled.cpp is compiled so here. What the machine has does not matter.

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/config/config.h"
#include "tessera/device/compiled.h"
#include "tessera/device/device.h"

namespace tessera {
namespace {

/// What `run` refuses; empty where it does not.
template <typename Run>
std::string refused(const Run& run) {
  try {
    run();
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Usage) << error.what();
    return error.what();
  }
}

const char* const kAdvice =
    " avx2: this program was compiled without it, only for baseline, avx512, avx512-bf16, amx; "
    "give one of these, or run ./dev build, which compiles all instruction sets";

TEST(LeftOut, IsRefusedByName) {
  EXPECT_EQ(levels_left_out(), "avx2");
  EXPECT_EQ(refused([] {
              make_cpu_device({.choices = CpuChoices{Isa::Avx2, false}});
            }),
            std::string("instruction set") + kAdvice);
  RunConfig config;
  config.max_isa = "avx2";
  for (const Isa machine : {Isa::Amx, Isa::Avx512, Isa::Baseline}) {
    SCOPED_TRACE(to_text(machine));
    EXPECT_EQ(refused([&] {
                choices_of(config, {machine, false});
              }),
              std::string("max-isa") + kAdvice);
  }
}

TEST(LeftOut, OtherLevelsAreTaken) {
  RunConfig config;
  config.max_isa = "avx512";
  EXPECT_EQ(choices_of(config, {Isa::Amx, false}).isa, Isa::Avx512);
  config.max_isa = "baseline";
  EXPECT_EQ(choices_of(config, {Isa::Amx, false}).isa, Isa::Baseline);
}

/// On a processor that has no more than avx2 that is the baseline.
TEST(LeftOut, TheMachineTakesTheBestThatIsThere) {
  const Isa best = machine_choices().isa;
  EXPECT_TRUE(is_compiled(best)) << to_text(best);
  EXPECT_EQ(make_cpu_device({.threads = 1})->isa(), to_text(best));
}

}  // namespace
}  // namespace tessera
