#pragma once
/// Other programs: started from a list of arguments, never from a line that a shell would read.

#include <string>
#include <vector>

namespace tessera {

struct ProcessResult {
  int exit_code = 0;  // 127: there is no such program; 128 + n: ended by signal n
  bool timed_out = false;
  std::string output, errors;

  bool ok() const { return exit_code == 0; }
};

struct ProcessOptions {
  std::string folder;  // working folder; empty: ours
  std::vector<std::string>
      environment;            // "NAME=value", beside or instead of the variables that we were given
  int timeout_seconds = 600;  // after that the program is killed, and what it started
};

/// Runs a program to its end, its input empty and without a terminal, and returns what it wrote.
/// Where this process ends before, however it does, the program and what it started (compilers
/// start others) get SIGTERM.
/// `arguments[0]` is its name, looked up in PATH unless it has a slash.
/// Errors: Fault::Resource where no process can be made at all.
ProcessResult run_process(const std::vector<std::string>& arguments,
                          const ProcessOptions& options = {});

}  // namespace tessera
