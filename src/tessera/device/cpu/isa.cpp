#include "tessera/device/cpu/isa.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "hwy/targets.h"
#include "tessera/device/compiled.h"
#include "tessera/gemm/onednn.h"
#include "tessera/gemm/tile_unit.h"

namespace tessera::cpu {

namespace {

Isa ask_processor() {
#if defined(__x86_64__)
  const std::int64_t targets = hwy::SupportedTargets();
  if ((targets & HWY_AVX2) == 0) return Isa::Baseline;
  if ((targets & HWY_AVX3) == 0) return Isa::Avx2;
  if (!tile_unit_usable(TileUnit::Dots)) return Isa::Avx512;
  return tile_unit_usable(TileUnit::Amx) ? Isa::Amx : Isa::Avx512Bf16;
#else
  return Isa::Baseline;
#endif
}

/// The highest level that the processor has and this program has kernels for.
Isa best_level() {
  Isa out = ask_processor();
  while (!is_compiled(out)) out = static_cast<Isa>(static_cast<int>(out) - 1);
  return out;
}

bool is_intel() {
#if defined(__x86_64__)
  return __builtin_cpu_is("intel") != 0;
#else
  return false;
#endif
}

void cap_highway(Isa isa) {
#if defined(__x86_64__)
  constexpr std::int64_t kAbove512 = HWY_AVX3_DL, kAbove2 = kAbove512 | HWY_AVX3,
                         kAboveBaseline = kAbove2 | HWY_AVX2;
  hwy::DisableTargets(isa == Isa::Baseline ? kAboveBaseline
                      : isa == Isa::Avx2   ? kAbove2
                                           : kAbove512);
#else
  (void)isa;
#endif
}

OnednnLevel onednn_level(Isa isa) {
  return isa == Isa::Baseline ? OnednnLevel::Sse41
         : isa == Isa::Avx2   ? OnednnLevel::Avx2
         : isa == Isa::Avx512 ? OnednnLevel::Avx512
                              : OnednnLevel::Any;
}

}  // namespace

/// Packed weights are a second and a third copy of the weights for the length of the micro-batch
/// loop, and writing them costs a pass over memory. AMD's cores gain 1 to 5 per cent, which does
/// not pay; Intel's lose up to half of a plain product's speed to row strides of whole pages, which
/// does. Where nothing was measured, f32 products are made by AMX.
CpuChoices processor_choices() {
  static const CpuChoices choices =
      CpuChoices{best_level(), is_intel(), F32Products::Amx}.at_most(Isa::Amx);
  return choices;
}

void cap_libraries(Isa isa) {
  static constinit std::mutex mutex;
  static constinit std::optional<Isa> capped;
  (void)processor_choices();  // asked before Highway is capped
  const Isa wanted = std::min(isa, Isa::Avx512);
  const std::lock_guard lock(mutex);
  if (!capped) {
    cap_highway(wanted);
    require(cap_onednn(onednn_level(wanted)), "oneDNN cannot be capped at ", to_text(wanted),
            ": it has already run in this process; make a device first");
    capped = wanted;
  }
  require(*capped == wanted, "a device of instruction set ", to_text(isa),
          " in a process whose first device uses ", to_text(*capped),
          ": libraries have one level per process; give all devices the same, or start another "
          "process");
}

}  // namespace tessera::cpu
