#pragma once
/// The `tessera` command: docs/command.md.

#include <exception>
#include <string>
#include <vector>

#include "tessera/apps/console.h"

namespace tessera {

using Arguments = std::vector<std::string>;

/// Runs the subcommand that `arguments` begins with and returns the exit code (docs/errors.md).
/// Errors are printed, once, on the console's error stream.
int run_command(const Arguments& arguments, Console& console);

/// The code of a command that ended with `code`: that of Fault::Resource, with a message, where all
/// went well but for what it printed, which standard output did not take.
int with_output_checked(int code, Console& console);

/// Prints an error and returns the exit code that it means; one that was told before is not
/// printed.
int report_failure(const std::exception_ptr& failure, Console& console);

/// A subcommand; each has a file of its own. Throws Error.
using Command = int (*)(const Arguments& arguments, Console& console);
int train_command(const Arguments& arguments, Console& console);
int sample_command(const Arguments& arguments, Console& console);
int verify_command(const Arguments& arguments, Console& console);
int plan_command(const Arguments& arguments, Console& console);
int prepare_command(const Arguments& arguments, Console& console);
int inspect_command(const Arguments& arguments, Console& console);
int launch_command(const Arguments& arguments, Console& console);

/// As in CMakeLists.txt; a test holds them together.
inline constexpr const char* kVersion = "0.1.0";

/// Stopped on request with a good checkpoint: start again to go on.
inline constexpr int kExitStopped = 75;

}  // namespace tessera
