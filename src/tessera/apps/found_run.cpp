#include "tessera/apps/found_run.h"

#include <map>
#include <string>

#include "tessera/apps/instruction_set.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/config/recorded.h"
#include "tessera/launch/agreement.h"
#include "tessera/launch/take_machine.h"

namespace tessera {

FoundRun find_run(Communicator* launched, const RanksCommand& command,
                  const std::function<std::int64_t(RunConfig& config, Problems& problems)>& find) {
  constexpr const char* kTexts = "programs.texts";
  FoundRun out{.recorded = {}, .asked = command.config};
  Problems problems = command.problems;
  agree_on_choices(out.asked, launched, problems);
  take_machine(out.asked, launched, problems);
  take_launched_devices(out.asked, command.devices_given, launched, problems);
  const auto found = from_leader(launched, [&] {
    RunConfig config = out.asked;
    const std::int64_t texts = find(config, problems);
    std::map<std::string, std::string> record = record_of(config);
    record[kTexts] = text(texts);
    return record;
  });
  out.recorded = config_of(found, "the configuration of rank 0", out.asked.families);
  complete(out.recorded);
  read_number(kTexts, found.at(kTexts), &out.texts);
  return out;
}

}  // namespace tessera
