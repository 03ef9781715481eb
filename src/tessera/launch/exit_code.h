#pragma once
/// How a command ends: the exit code of an error and its message (docs/reference/errors.md).

#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "tessera/base/error.h"
#include "tessera/launch/console.h"

namespace tessera {

/// Runs `work`, which returns an exit code; an error is printed on the console, once, and gives the
/// code that it means.
int exit_code_of(Console& console, const std::function<int()>& work);

/// The code of a command that ended with `code`: that of Fault::Resource, with a message, where all
/// went well but for what it printed, which standard output did not take; kExitPipeClosed, without
/// a message, where that is a closed pipe.
int with_output_checked(int code, Console& console);

/// What an exception means, in words for whoever asked for the work.
struct Failure {
  Fault fault = Fault::Internal;
  std::string message;
};
Failure failure_of(const std::exception_ptr& failure);

/// Prints an error and returns the exit code that it means; one that was told before is not
/// printed.
int report_failure(const std::exception_ptr& failure, Console& console);

/// Keeps what may never come to an end, such as a device that was lost, until the process ends
/// (null: a thread is at it already): then destructors of static objects could wait for it too.
void leave_behind(std::shared_ptr<const void> what);
/// Something was left behind: only _exit ends the process for sure, once all has been written.
bool is_left_behind();

/// Standard output was a pipe, and its reader ended first: 128 + SIGPIPE, as of any other program.
inline constexpr int kExitPipeClosed = 141;

/// Stopped on request with a good checkpoint: start again to go on.
inline constexpr int kExitStopped = 75;

}  // namespace tessera
