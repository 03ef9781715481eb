#pragma once
/// Calls of a plugin, with errors as exceptions.

#include <optional>
#include <string>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/pjrt/c/api.h"
#include "tessera/pjrt/named_value.h"
#include "tessera/pjrt/plugin.h"

namespace tessera::pjrt::c {

/// Null where the plugin's table ends before the call, or has nothing there.
void (*entry(const Api& api, Call call))();

/// "libpjrt_cpu.so: PJRT_Client_Compile: INVALID_ARGUMENT: ..., do this". Takes over the error.
[[noreturn]] void fail_call(const Plugin& plugin, Call call, Error* error);
[[noreturn]] void fail_missing(const Plugin& plugin, Call call);
/// The plugin answered what cannot be: `what` says it.
[[noreturn]] void fail_answer(const Plugin& plugin, Call call, std::string_view what);

Code code_of(const Plugin& plugin, Error* error);
void destroy_error(const Plugin& plugin, Error* error);

template <typename Arguments>
Function<Arguments> function(const Plugin& plugin) {
  void (*const there)() = entry(plugin.api(), Arguments::kCall);
  if (there == nullptr) fail_missing(plugin, Arguments::kCall);
  return reinterpret_cast<Function<Arguments>>(there);
}

/// Errors: the plugin's, and a call that it lacks.
template <typename Arguments>
void call(const Plugin& plugin, Arguments& arguments) {
  Error* const error = function<Arguments>(plugin)(&arguments);
  if (error != nullptr) fail_call(plugin, Arguments::kCall, error);
}

/// False where the plugin lacks the call or says that it does not do it. Errors: all others.
template <typename Arguments>
bool call_if_there(const Plugin& plugin, Arguments& arguments) {
  if (entry(plugin.api(), Arguments::kCall) == nullptr) return false;
  Error* const error = function<Arguments>(plugin)(&arguments);
  if (error == nullptr) return true;
  if (code_of(plugin, error) != Code::Unimplemented) fail_call(plugin, Arguments::kCall, error);
  destroy_error(plugin, error);
  return false;
}

/// For destructors: what goes wrong is nobody's.
template <typename Arguments>
void call_quietly(const Plugin& plugin, Arguments& arguments) noexcept {
  if (entry(plugin.api(), Arguments::kCall) == nullptr) return;
  const auto there = reinterpret_cast<Function<Arguments>>(entry(plugin.api(), Arguments::kCall));
  Error* const error = there(&arguments);
  if (error != nullptr) destroy_error(plugin, error);
}

/// The answer of a Get.
template <typename Arguments, typename Of>
auto get(const Plugin& plugin, Of* of) {
  Arguments out = arguments<Arguments>();
  out.of = of;
  call(plugin, out);
  return out.answer;
}

/// A Do, in a destructor.
template <typename Arguments, typename Of>
void end(const Plugin& plugin, Of* of) noexcept {
  Arguments out = arguments<Arguments>();
  out.of = of;
  call_quietly(plugin, out);
}

/// What a plugin said, copied. Errors: bytes without a place, more of them than a text has.
std::string copy(const Plugin& plugin, Call call, Text text);
template <typename Arguments, typename Of>
std::string get_text(const Plugin& plugin, Of* of) {
  return copy(plugin, Arguments::kCall, get<Arguments>(plugin, of));
}

/// Checks a list's place and length before it is read.
template <typename T>
std::span<const T> checked(const Plugin& plugin, Call call, List<T> list) {
  constexpr std::size_t kMost = std::size_t{1}
                                << 24;  // more devices, outputs or dims than there are
  if (list.count > kMost || (list.items == nullptr && list.count > 0)) {
    fail_answer(plugin, call, text("a list of ", list.count, " items"));
  }
  return {list.items, list.count};
}

/// Errors: as copy; values of a kind that this version does not know are left out.
NamedValues copy(const Plugin& plugin, Call call, List<NamedValue> values);

/// Nothing where the plugin does not tell.
NamedValues attributes_of(const Plugin& plugin, DeviceDescription* device);

/// Options as the interface wants them: views of `values`, which are to outlive the result.
std::vector<NamedValue> views(const NamedValues& values);

inline Text view(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace tessera::pjrt::c
