#pragma once
/// A profile as a file for trace viewers.

#include <string>

#include "tessera/runtime/profile.h"

namespace tessera {

/// Chrome's trace event format, which Perfetto reads too: one complete event per step and per call
/// of a kernel, and the table under the key `profile`. docs/reference/files.md has the keys.
std::string trace_json(const Profile& profile);

}  // namespace tessera
