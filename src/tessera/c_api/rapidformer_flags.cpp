#include "tessera/c_api/rapidformer_flags.h"

#include <nlohmann/json.hpp>

#include "tessera/config/fields.h"
#include "tessera/rapidformer/given_flags.h"

namespace tessera {

namespace {

using FlagsJson = nlohmann::ordered_json;

FlagsJson field_values(const Field& field, const RunConfig& config) {
  const Slot slot = read_slot(field, config);
  if (const auto* const list = std::get_if<std::vector<std::string>*>(&slot)) return **list;
  return get_text(field, config);
}

FlagsJson fields_json(const RunConfig& config) {
  const RunConfig usual;
  FlagsJson out = FlagsJson::object();
  for (const Field& field : fields()) {
    const bool open = config.defaulted.contains(field.name);
    if (open && get_text(field, config) == get_text(field, usual)) continue;
    if (!get_text(field, config).empty())
      out[std::string(field.name)] = field_values(field, config);
  }
  return out;
}

}  // namespace

std::string rapidformer_flags_json(const Arguments& arguments, FlagsOf whose) {
  const auto dumped = [](const FlagsJson& json) {
    return json.dump(-1, ' ', false, FlagsJson::error_handler_t::replace);
  };
  const AskedTraining asked = read_rapidformer_flags(arguments, whose);
  constexpr int kColumns = 100;
  if (asked.help) return dumped({{"help", rapidformer_help({}, kColumns)}});
  asked.problems.raise();
  Problems problems;
  std::vector<std::string> notices;
  const GivenFlags flags(arguments, {}, problems, notices);
  FlagsJson given = FlagsJson::object();
  for (std::size_t i = 0; i < flags.typed_all().settings.size(); ++i)
    given[flags.typed_all().flags[i]] = flags.typed_all().settings[i].values;
  return dumped({{"fields", fields_json(asked.config)},
                 {"given", given},
                 {"known", rapidformer_flag_names()},
                 {"notices", asked.notices}});
}

}  // namespace tessera
