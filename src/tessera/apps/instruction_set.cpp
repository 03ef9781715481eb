#include "tessera/apps/instruction_set.h"

#include "tessera/apps/amx_speedup.h"
#include "tessera/device/device.h"
#include "tessera/runtime/choices.h"
#include "tessera/runtime/f32_products.h"

namespace tessera {

namespace {

/// f32 products may be made by AMX or not, and kernels of this machine are to make them.
bool is_open(const RunConfig& config, const CpuChoices& choices) {
  return choices.isa >= Isa::Amx && config.f32_products == "auto" &&
         config.parallel.machine.kernels == KernelSource::Cpu;
}

}  // namespace

void agree_on_choices(RunConfig& config, Communicator* launched, Problems& problems) {
  CpuChoices mine = machine_choices();
  Problems own;
  own.gather([&] { mine = choices_of(config, mine); });
  if (launched != nullptr && launched->rank() > 0) own.raise();
  problems.gather([&] { own.raise(); });
  CpuChoices common = common_choices(mine, launched);
  // Not before the level of all is known: libraries keep to that of the first device (cpu/isa.h).
  if (is_open(config, common)) {
    const bool leads = launched == nullptr || launched->rank() == 0;
    if (leads && problems.empty()) {
      const AmxSpeedup measured = amx_speedup();
      common.f32_products = faster_products(measured.times);
      config.f32_reason = to_text(measured);
    }
    common = common_choices(common, launched);
  }
  config.choices = common;
}

}  // namespace tessera
