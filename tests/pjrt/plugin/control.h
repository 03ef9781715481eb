#pragma once
/// How tests steer the plugin of tests/pjrt/plugin: what fails, what is missing, what is still alive.

#include <atomic>
#include <string>

#include "tessera/pjrt/c/api.h"

namespace tessera::pjrt {

struct Control {
  /// The call that fails, such as "PJRT_Client_Compile"; empty: none. Events fail at
  /// PJRT_Event_Await.
  std::string fail_at;
  c::Code fail_code = c::Code::Internal;
  int passing = 0;  // so many calls of it pass before one fails
  /// Objects that were made and not destroyed, errors and events among them.
  std::atomic<int> alive = 0;
  /// The table, which may be changed before the plugin is loaded, and calls of it after.
  c::Api* api = nullptr;
  /// What attributes of the plugin are told; the plugin's own where null.
  c::List<c::NamedValue> attributes;
  /// What PJRT_Error_Message says of an error made on demand.
  std::string message = "as the test wants it";
};

/// The name under which the plugin exports a function that returns its Control.
constexpr const char* kControlSymbol = "tessera_test_control";

}  // namespace tessera::pjrt
