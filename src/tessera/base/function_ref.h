#pragma once
/// A function that is borrowed for one call: no copy, no allocation.

#include <type_traits>
#include <utility>

namespace tessera {

template <typename Signature>
class FunctionRef;

/// Refers to what it was made of, which must outlive it: take it as a parameter, store it nowhere.
template <typename Result, typename... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <typename Function>
  requires(!std::is_same_v<std::remove_cvref_t<Function>, FunctionRef>)
      FunctionRef(Function&& function)  // NOLINT: any function is taken as it is
      : function_(const_cast<void*>(static_cast<const void*>(&function))),
        call_([](void* of, Arguments... arguments) -> Result {
          return (*static_cast<std::remove_reference_t<Function>*>(of))(
              std::forward<Arguments>(arguments)...);
        }) {}

  Result operator()(Arguments... arguments) const {
    return call_(function_, std::forward<Arguments>(arguments)...);
  }

 private:
  void* function_;
  Result (*call_)(void*, Arguments...);
};

}  // namespace tessera
