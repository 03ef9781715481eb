#pragma once
/// `--user-script FILE.cpp`: a program of the user's, compiled when it is first run, and then kept.

#include <string>

#include "tessera/apps/command.h"

namespace tessera {

/// Errors: Fault::Usage: always, today.
int run_user_script(const std::string& path, const Arguments& arguments, Console& console);

}  // namespace tessera
