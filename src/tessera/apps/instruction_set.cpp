#include "tessera/apps/instruction_set.h"

#include "tessera/device/device.h"
#include "tessera/runtime/choices.h"

namespace tessera {

void take_choices(RunConfig& config, Communicator* launched, Problems& problems) {
  CpuChoices mine = machine_choices();
  problems.gather([&] { mine = choices_of(config, mine); });
  config.choices = common_choices(mine, launched);
}

}  // namespace tessera
