#include "tessera/launch/exit_code.h"

#include <cerrno>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/comm/processes.h"
#include "tessera/launch/out_of_memory.h"

namespace tessera {

namespace {

/// Whoever closes a pipe has seen enough: that is no error to speak of.
int output_failed(const std::string& reason, Console& console) {
  if (output_is_closed()) return kExitPipeClosed;
  console.err << "error: not all output could be written to standard output" << reason
              << "; free some space\n";
  return static_cast<int>(Fault::Resource);
}

/// Of the process, and never destroyed.
struct LeftBehind {
  std::mutex mutex;
  std::vector<std::shared_ptr<const void>> things;
};
LeftBehind& left_behind() {
  static auto* const out = new LeftBehind;
  return *out;
}

}  // namespace

void leave_behind(std::shared_ptr<const void> what) {
  const std::scoped_lock lock(left_behind().mutex);
  left_behind().things.push_back(std::move(what));
}

bool is_left_behind() {
  const std::scoped_lock lock(left_behind().mutex);
  return !left_behind().things.empty();
}

int with_output_checked(int code, Console& console) {
  errno = 0;
  console.out.flush();
  if (console.out.good() || code != 0) return code;
  const std::string reason = errno == 0 ? "" : ": " + std::generic_category().message(errno);
  return output_failed(reason, console);
}

Failure failure_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return {error.fault(), printable(error.what())};
  } catch (const std::bad_alloc& error) {
    const auto* const ours = dynamic_cast<const OutOfMemory*>(&error);
    return {Fault::Resource,
            text(ours == nullptr ? "out of memory" : ours->what(),
                 "; lower --micro-batch-size (the same numbers in less memory), --context or "
                 "--width, or raise the limit (ulimit -v, cgroup); `tessera plan` prints the "
                 "memory of a run")};
  } catch (const std::exception& error) {
    return {Fault::Internal, text("internal error: ", printable(error.what()),
                                  "; please report this with the command")};
  } catch (...) {
    return {Fault::Internal,
            "internal error: something other than an exception was thrown; please report this "
            "with the command"};
  }
}

int report_failure(const std::exception_ptr& failure, Console& console) {
  try {
    std::rethrow_exception(failure);
  } catch (const OutputFailed&) {
    return output_failed("", console);
  } catch (const Reported& error) {
    return static_cast<int>(error.fault());
  } catch (...) {
  }
  const Failure known = failure_of(failure);
  console.out.flush();
  console.err << "error: " << known.message << std::endl;
  return static_cast<int>(known.fault);
}

int exit_code_of(Console& console, const std::function<int()>& work) {
  try {
    return with_output_checked(work(), console);
  } catch (...) {
    return report_failure(std::current_exception(), console);
  }
}

}  // namespace tessera
