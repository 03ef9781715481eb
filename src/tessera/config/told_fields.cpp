#include "tessera/config/told_fields.h"

#include "tessera/base/error.h"
#include "tessera/config/fields.h"

namespace tessera {

std::vector<std::string_view> data_fields(std::string_view when) {
  std::vector<std::string_view> out;
  for (const Field& field : fields()) {
    if (field.group == FieldGroup::Data && field.when == when) out.push_back(field.name);
  }
  return out;
}

void refuse_told(const RunConfig& config, const std::vector<std::string_view>& names,
                 std::string_view what, std::string_view instead) {
  for (const std::string_view name : names) {
    const auto told = config.asked_for.find(name);
    require(told == config.asked_for.end(), told == config.asked_for.end() ? "" : told->second,
            " does nothing with ", what, "; ", instead);
  }
}

}  // namespace tessera
