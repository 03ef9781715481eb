#pragma once
/// Which files a run or command may replace: those of the same kind that Tessera wrote.
///
/// `--profile corpus.txt` must not cost the corpus. A kind of file is known by a mark near its
/// begin.

#include <cstdint>
#include <string>

#include "tessera/config/problems.h"

namespace tessera {

enum class OwnFile : std::uint8_t { Page, Picture, Plan, Profile, BenchResults, Machine };

/// `flag` names the file to write; files that are not there, empty ones and devices may be written.
/// Errors, as a problem: another file is there.
void check_replaces_own(const std::string& flag, const std::string& file, OwnFile kind,
                        Problems& problems);

}  // namespace tessera
