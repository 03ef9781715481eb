#include "tessera/config/fields.h"

#include <algorithm>
#include <array>

#include "tessera/config/fields/adapters.h"
#include "tessera/config/fields/experts.h"
#include "tessera/config/fields/machine.h"
#include "tessera/config/fields/model.h"
#include "tessera/config/fields/run.h"

namespace tessera {

namespace {

template <std::size_t... Sizes>
constexpr auto joined(const Field (&... parts)[Sizes]) {
  std::array<Field, (Sizes + ...)> out{};
  auto* at = out.data();
  ((at = std::copy(parts, parts + Sizes, at)), ...);
  return out;
}

constexpr auto kFields =
    joined(rows::kRunFields, rows::kModelFields, rows::kExpertFields, rows::kAdapterFields, rows::kMachineFields);

}  // namespace

std::span<const Field> fields() { return kFields; }

std::string_view to_text(FieldGroup group) {
  constexpr std::string_view kNames[] = {"run",       "data",     "model",  "adapters",
                                         "optimizer", "parallel", "machine"};
  return kNames[static_cast<std::size_t>(group)];
}

}  // namespace tessera
