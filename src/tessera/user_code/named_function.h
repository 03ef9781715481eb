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
/// Of what a catch (...) caught: "int". Only within it.
std::string name_of_thrown();

/// What `run` returns. Exceptions that are no errors of ours become some, of a script that is
/// wrong.
template <typename Run>
auto with_errors(const Run& run) {
  try {
    return run();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(Fault::Usage, text(error.what(), " (", name_of_type(typeid(error)), ")"));
  } catch (...) {
    throw Error(Fault::Usage, text("an exception that is not a std::exception was thrown (",
                                   name_of_thrown(), ")"));
  }
}

/// The same. Its errors say where they come from: "in " and what `name` returns.
template <typename Name, typename Run>
auto run_named(const Name& name, const Run& run) {
  try {
    return with_errors(run);
  } catch (const Error& error) {
    throw error.with("in " + name());
  }
}

/// The same function, whose errors name it: "in MyPretrainer::run_forward_step".
template <typename Result, typename... Args>
std::function<Result(Args...)> naming(const std::string& name,
                                      std::function<Result(Args...)> function) {
  return [name, function = std::move(function)](Args... args) -> Result {
    return run_named([&] { return name; }, [&] { return function(std::forward<Args>(args)...); });
  };
}

}  // namespace tessera
