#pragma once
/// `--user-script FILE.cpp`: a program of the user's, compiled when it is first run, and then kept.
/// FILE.py is run by $PYTHON, or python3.

#include <string>
#include <vector>

#include "tessera/apps/command.h"
#include "tessera/rapidformer/asked_devices.h"

namespace tessera {

/// Where what a script is compiled with lies.
struct ScriptTools {
  std::string compiler;  // a name to look up in PATH, or a path; or words: "ccache g++"
  std::string include;   // the folder of headers: "PREFIX/include"
  std::string library;   // the shared library
  std::string cache;     // the folder of compiled scripts
};

/// Those of this process and its environment: $CXX, or the first of c++, g++ and clang++ that there
/// is; headers and library beside the executable, as an installation or a build folder has them;
/// the cache $XDG_CACHE_HOME/tessera/scripts, or that in ~/.cache.
/// Errors: Fault::Resource: one of them is not there.
ScriptTools script_tools(const EnvironmentVariables& environment);

/// The program that the script at `path` is compiled to. One that was compiled before from the same
/// source, own headers (those that are not the system's), compiler, flags and library is used
/// again. What was edited while it was compiled is compiled again the next time. Two processes may
/// do this at once: a program appears under its name when it is complete. Warnings of the compiler
/// are told on `console`.
/// Errors: Fault::Usage: there is no such file; it has no main(); it does not compile: the error
///         has all that the compiler says.
///         Fault::Resource: no compiler; the cache cannot be written.
std::string compiled_script(const std::string& path, const ScriptTools& tools, Console& console);

/// Compiles the script, but for one of Python, and goes on as that program, whose arguments these
/// are: returns only where that is not possible. Errors: as of compiled_script; Fault::Resource: it cannot be started.
int run_user_script(const std::string& path, const Arguments& arguments, Console& console,
                    const EnvironmentVariables& environment);

}  // namespace tessera
