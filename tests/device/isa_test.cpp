/// Instruction sets: the level that a device is given is the one that its kernels use, libraries
/// included.

#include <gtest/gtest.h>

#include <cstdlib>
#include <dnnl.hpp>

#include "device/kernel_test.h"
#include "hwy/targets.h"
#include "tessera/device/cpu/isa.h"
#include "tessera/ops/matmul.h"

namespace tessera {
namespace {

/// What `make` refuses; empty where it does not.
template <typename Make>
std::string refusal(const Make& make) {
  try {
    make();
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Usage) << error.what();
    return error.what();
  }
}

TEST(InstructionSets, AreReadAsTheyArePrinted) {
  for (const std::string_view name : kIsaNames) EXPECT_EQ(to_text(parse_isa(name, "")), name);
  EXPECT_EQ(refusal([] { parse_isa("avx3", "--max-isa"); }),
            "--max-isa 'avx3' is no instruction set; it can be avx2, avx512, avx512-bf16 or amx");
}

/// Of a process that has made no device before.
void make_device_of_avx2() {
  const std::unique_ptr<Device> device =
      make_cpu_device({.threads = 1, .choices = machine_choices().at_most(Isa::Avx2)});
  EXPECT_EQ(device->isa(), "avx2");
  const std::vector<HostTensor> ins = {testing::random_tensor(DType::F32, {64, 64}, 1),
                                       testing::random_tensor(DType::F32, {64, 64}, 2)};
  const testing::KernelRun run = testing::run_kernel(
      *device, kMatmul, {std::string("m k, k n -> m n")}, ins, {{DType::F32, {64, 64}, {}}});
  EXPECT_EQ(run.kernel, "hwy:matmul");
  EXPECT_EQ(dnnl::get_effective_cpu_isa(), dnnl::cpu_isa::avx2);
  // Last: whoever asks Highway has it choose anew, of all that the processor has.
  EXPECT_EQ(hwy::SupportedTargets() & (HWY_AVX3 | HWY_AVX3_DL), 0);
  EXPECT_NE(hwy::SupportedTargets() & HWY_AVX2, 0);
  std::_Exit(::testing::Test::HasFailure() ? 1 : 0);
}

TEST(InstructionSets, ADeviceTakesNoMoreThanItIsGiven) {
  if (machine_choices().isa < Isa::Avx2) GTEST_SKIP() << "the least level is the only one";
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own, from its start
  EXPECT_EXIT(make_device_of_avx2(), ::testing::ExitedWithCode(0), "");
}

TEST(InstructionSets, WhatTheMachineLacksIsRefused) {
  const CpuChoices machine = machine_choices();
  if (machine.isa == Isa::Amx) GTEST_SKIP() << "this machine has all levels";
  const CpuChoices above{static_cast<Isa>(static_cast<int>(machine.isa) + 1), false};
  EXPECT_EQ(refusal([&] { make_cpu_device({.choices = above}); }),
            text("instruction set ", to_text(above.isa), " is above ", to_text(machine.isa),
                 ", the highest of this machine; choose that or a lower one"));
}

/// Libraries have one level per process: a device that needs another one is refused, not given it.
TEST(InstructionSets, LibrariesKeepTheLevelOfTheFirstDevice) {
  const CpuChoices machine = machine_choices();
  if (machine.isa < Isa::Avx512) GTEST_SKIP() << "needs two levels of libraries";
  const auto first = make_cpu_device({.threads = 1});
  const auto lower = [&](Isa isa) {
    return refusal([&] { make_cpu_device({.threads = 1, .choices = machine.at_most(isa)}); });
  };
  EXPECT_EQ(lower(Isa::Avx512), "") << "f32 code of libraries is that of avx512";
  EXPECT_EQ(lower(Isa::Avx2),
            "a device of instruction set avx2 in a process whose first device uses avx512: "
            "libraries have one level per process; give all devices the same, or start another "
            "process");
}

TEST(InstructionSets, PackingIsAChoiceToo) {
  const Attrs rule = {std::string("m k, n k -> m n")};
  const TensorType a{DType::F32, {1024, 512}, {}}, b{DType::F32, {512, 512}, {}},
      c{DType::F32, {1024, 512}, {}};
  const OpCall call(kMatmul, {&a, &b}, rule, {&c});
  for (const bool packs : {false, true}) {
    CpuChoices choices = machine_choices().at_most(Isa::Avx512Bf16);
    choices.pack_weights = packs;
    const auto device = make_cpu_device({.threads = 1, .choices = choices});
    EXPECT_EQ(device->wanted_layout(call, 1, 1000).has_value(), packs);
  }
}

}  // namespace
}  // namespace tessera
