/// A file of the cache of compiled programs: what was kept comes back, or nothing does.

#include "tessera/accelerator/program_cache.h"

#include <algorithm>

#include "fuzz/bytes.h"
#include "fuzz/target.h"

namespace tessera::fuzz {

namespace {

constexpr std::string_view kKey = "module", kProgram = "a compiled program";

/// The input is the file, or what is written over a part of a good one.
std::string damaged(const std::string& good, std::string_view input) {
  Bytes in(input);
  if (in.below(2) == 0) return std::string(in.rest());
  std::string out = good;
  const std::size_t at = in.take<std::uint16_t>() % (out.size() + 1);
  const std::size_t cut = in.take<std::uint8_t>();
  return out.replace(at, std::min(cut, out.size() - at), in.rest());
}

void run(std::string_view input) {
  const std::string good = kept_bytes(kKey, kProgram), bytes = damaged(good, input);
  const auto found = kept_program(bytes, kKey);
  check(found.has_value() == (bytes == good), "damage of a kept program is not noticed");
  then(
      [&] { check(kept_program(kept_bytes(input, bytes), input) == bytes, "another comes back"); });
  if (!found) fail(Fault::Usage, "damaged");
  check(*found == kProgram, "another program comes back");
}

}  // namespace

const Target kTarget = {1 << 20, 512, run};

}  // namespace tessera::fuzz
