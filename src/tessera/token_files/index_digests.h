#pragma once
/// Digests of files that are kept together, in a file beside them: lines as `xxhsum -H2` prints
/// them, so that `xxhsum -c` checks them too.

#include <span>
#include <string>

namespace tessera {

inline constexpr const char* kDigests = "digests.txt";

/// Writes BASEdigests.txt, of the files BASE + name. Errors: of InputFile and AtomicFile.
void write_digests(const std::string& base, std::span<const std::string> names);

enum class Digests {
  Missing,  // no such file, or not a line for each
  Equal,
};
/// Errors: Fault::Data: a file whose digest is another than there; it is named.
Digests check_digests(const std::string& base, std::span<const std::string> names);

}  // namespace tessera
