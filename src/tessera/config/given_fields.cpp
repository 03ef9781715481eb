#include "tessera/config/given_fields.h"

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

void refuse_given(const RunConfig& config, const std::vector<std::string_view>& names,
                  std::string_view what, std::string_view instead) {
  for (const std::string_view name : names) {
    const auto given = config.given.find(name);
    require(given == config.given.end(), given == config.given.end() ? "" : given->second,
            " does nothing with ", what, "; ", instead);
  }
}

}  // namespace tessera
