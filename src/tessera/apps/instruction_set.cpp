#include "tessera/apps/instruction_set.h"

#include "tessera/device/device.h"
#include "tessera/runtime/choices.h"

namespace tessera {

void agree_on_choices(RunConfig& config, Communicator* launched, Problems& problems) {
  CpuChoices mine = machine_choices();
  Problems own;
  own.gather([&] { mine = choices_of(config, mine); });
  if (launched != nullptr && launched->rank() > 0) own.raise();
  problems.gather([&] { own.raise(); });
  config.choices = common_choices(mine, launched);
}

}  // namespace tessera
