#pragma once
/// How tests steer the plugin of tests/pjrt/plugin: what fails, what is missing, what is still alive.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "tessera/pjrt/c/api.h"

namespace tessera::pjrt {

struct Control {
  /// The call that fails, such as "PJRT_Client_Compile"; empty: none.
  std::string fail_at;
  c::Code fail_code = c::Code::Internal;
  std::atomic<int> passing = 0;  // so many calls of it pass before one fails
  bool once = false;             // one fails, not all behind it
  std::atomic<int> failed = 0;
  /// The call in which the plugin ends the process, as XLA does on some bad input.
  std::string abort_at;
  /// The call in which it calls exit(), as some drivers do.
  std::string exit_at;
  /// While they are set, executions do not end, or clients cannot be destroyed: a device was lost.
  std::atomic<bool> hold = false, keep_clients = false;
  std::atomic<int> hold_device = -1;  // its executions alone do not end; -1: of no device
  std::atomic<int> fail_device = -1;  // the end of its executions is an error; -1: of no device
  /// Executions end so much later.
  std::chrono::milliseconds late{0};
  std::atomic<int> executions = 0;  // that were started
  bool joins = true;                // options that name other processes are looked at
  int devices = 1;                  // of a client whose options do not say it
  std::string platform = "test";
  /// Bytes of buffers on each of the first devices, now and at most.
  std::array<std::atomic<std::int64_t>, 8> bytes = {}, most_bytes = {};
  /// Objects that were made and not destroyed, errors and events among them.
  std::atomic<int> alive = 0;
  /// The table, which may be changed before the plugin is loaded, and calls of it after.
  c::Api* api = nullptr;
  /// What attributes of the plugin are told; the plugin's own where null.
  c::List<c::NamedValue> attributes;
  /// What PJRT_Error_Message says of an error made on demand.
  std::string message = "as the test wants it";
};

/// What steers the plugin of a program that is not a test: "fail_at=PJRT_Client_Compile fail_code=8", with
/// passing, once=1, abort_at, exit_at, hold=1, keep_clients=1,
/// devices.
constexpr const char* kControlVariable = "TESSERA_TEST_PLUGIN";

/// The name under which the plugin exports a function that returns its Control.
constexpr const char* kControlSymbol = "tessera_test_control";

}  // namespace tessera::pjrt
