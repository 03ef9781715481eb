#include "tessera/train/told_fields.h"

#include "tessera/base/error.h"

namespace tessera {

void refuse_told(const RunConfig& config, std::initializer_list<std::string_view> names,
                 std::string_view what, std::string_view instead) {
  for (const std::string_view name : names) {
    const auto told = config.asked_for.find(name);
    require(told == config.asked_for.end(), told == config.asked_for.end() ? "" : told->second,
            " does nothing with ", what, "; ", instead);
  }
}

}  // namespace tessera
