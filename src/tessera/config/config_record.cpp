/// A configuration as texts by field: what checkpoints record of it.

#include <map>

#include "tessera/base/text.h"
#include "tessera/config/config.h"
#include "tessera/config/family_fields.h"
#include "tessera/config/fields.h"

namespace tessera {

std::map<std::string, std::string> record_of(const RunConfig& config) {
  std::map<std::string, std::string> out;
  for (const Field& field : fields()) out[std::string(field.name)] = get_text(field, config);
  return out;
}

RunConfig config_of(const std::map<std::string, std::string>& record, const std::string& where,
                    const OwnFamilies& families) {
  RunConfig base;
  base.families = families;
  return config_over(std::move(base), record, where);
}

RunConfig config_over(RunConfig config, const std::map<std::string, std::string>& record,
                      const std::string& where) {
  for (const Field& field : fields()) {
    const auto found = record.find(std::string(field.name));
    if (found == record.end()) continue;
    try {
      if (is_list(field)) {
        std::get<std::vector<std::string>*>(field.slot(config))->clear();
        for (const std::string& value : split(found->second, '\n')) {
          if (!value.empty()) set_text(field, config, value, field.name);
        }
      } else {
        set_text(field, config, found->second, field.name);
      }
    } catch (const Error& error) {
      fail(Fault::Checkpoint, where, ": ", error.what(), " (in its configuration)");
    }
  }
  forget_unread_fields(config);
  return config;
}

}  // namespace tessera
