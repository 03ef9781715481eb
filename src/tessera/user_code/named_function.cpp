#include "tessera/user_code/named_function.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace tessera {

std::string name_of_type(const std::type_info& type) {
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, nullptr), std::free);
  return name ? name.get() : type.name();
}

std::string name_of_thrown() {
  const std::type_info* const type = abi::__cxa_current_exception_type();
  return type == nullptr ? "unknown" : name_of_type(*type);
}

}  // namespace tessera
