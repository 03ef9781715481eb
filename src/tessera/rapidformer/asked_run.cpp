#include "tessera/rapidformer/asked_run.h"

#include <variant>

#include "tessera/checkpoint/checkpoint_folder.h"
#include "tessera/config/fields.h"

namespace tessera {

RunConfig AskedRun::so_far() const {
  Problems found_later;
  std::vector<std::string> notices_later;
  return configure(flags.settings(), found_later, notices_later, families);
}

std::optional<std::int64_t> AskedRun::count(std::string_view name) const {
  const std::optional<std::int64_t> given = flags.count(name);
  if (given || !given_elsewhere) return given;
  const RunConfig config = so_far();
  const Field& field = *find_field(name).field;
  if (config.preset.empty() && config.defaulted.contains(field.name)) return {};
  return *std::get<std::int64_t*>(read_slot(field, config));
}

bool AskedRun::asks(std::string_view field) const { return so_far().given.contains(field); }

bool AskedRun::has_loaded_model() const {
  const std::string* const load = flags.find("load");
  return load != nullptr &&
         (flags.find("finetune") != nullptr || !checkpoints_of_run(*load).empty());
}

}  // namespace tessera
