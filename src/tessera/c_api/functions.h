#pragma once
/// The commands that other languages call as functions.

#include <atomic>
#include <string>
#include <string_view>

#include "tessera/c_api/listener.h"
#include "tessera/launch/console.h"

namespace tessera {

struct FunctionCall {
  Arguments arguments;
  Listener& listener;  // hears events
  Console& console;    // whose lines the listener hears
  std::atomic<bool>& stop;
  std::atomic<bool>& save;
  std::atomic<double>& lr;
  const tessera_program* program = nullptr;  // whose samples and scores they are; none: the flags'
};

struct FunctionResult {
  std::string json;
  int code = 0;
};

/// Throws what goes wrong.
using Function = FunctionResult (*)(const FunctionCall& call);

/// The function that does what a command does. Errors: there is none.
Function function_of(std::string_view command);
/// The same with a program.
Function program_function_of(std::string_view command);

/// The flags of that command: docs in c_api.h. Errors: likewise.
std::string flags_json(std::string_view command);

}  // namespace tessera
