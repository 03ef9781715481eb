#include "tessera/pjrt/named_value.h"

#include "tessera/base/printable.h"
#include "tessera/base/text.h"

namespace tessera::pjrt {

std::string to_text(const NamedValue& value) {
  const auto shown = [](const auto& it) -> std::string {
    using T = std::decay_t<decltype(it)>;
    if constexpr (std::is_same_v<T, std::string>) {
      return text('"', printable(it), '"');
    } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
      return text('[', join(it), ']');
    } else {
      return text(it);
    }
  };
  return text(printable(value.name), " = ", std::visit(shown, value.value));
}

const Value* find(const NamedValues& values, std::string_view name) {
  for (const NamedValue& value : values) {
    if (value.name == name) return &value.value;
  }
  return nullptr;
}

}  // namespace tessera::pjrt
