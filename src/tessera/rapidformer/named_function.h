#pragma once
/// Functions of a user script, which errors name.

#include <exception>
#include <functional>
#include <new>
#include <string>
#include <typeinfo>
#include <utility>

#include "tessera/base/error.h"

namespace tessera {

/// As it is written: "MyPretrainer".
std::string name_of_type(const std::type_info& type);

/// The same function, whose errors say where they come from: "in MyPretrainer::run_forward_step".
/// Exceptions that are no errors of ours become some.
template <typename Result, typename... Args>
std::function<Result(Args...)> naming(const std::string& name,
                                      std::function<Result(Args...)> function) {
  return [name, function = std::move(function)](Args... args) -> Result {
    try {
      return function(std::forward<Args>(args)...);
    } catch (const Error& error) {
      throw error.with("in " + name);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      throw Error(Fault::Usage, text(error.what(), " (", name_of_type(typeid(error)), ")"))
          .with("in " + name);
    }
  };
}

}  // namespace tessera
