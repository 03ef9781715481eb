#pragma once
/// The text that `tessera bench` trains on where the user names none.

#include <string>

namespace tessera {

/// So many different characters, as the text of nanoGPT's recipe has.
inline constexpr int kBenchCharacters = 65;

/// Writes the licence texts that every Debian has, without their rarest characters.
/// Errors: Fault::Usage: there are none here.
void write_bench_text(const std::string& path);

}  // namespace tessera
