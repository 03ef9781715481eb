/// Bytes packed by gzip or zstd: what they hold does not depend on the pieces in which it is read.

#include "tessera/files/unpack.h"

#include <algorithm>

#include "fuzz/target.h"

namespace tessera::fuzz {

namespace {

constexpr std::size_t kMost = 1 << 18;  // a few bytes may hold many more

std::string unpacked(std::string_view input, std::size_t piece) {
  Unpacker unpacker("input", [&](std::span<std::byte> into) {
    const std::size_t some = std::min(into.size(), input.size());
    std::ranges::copy(std::as_bytes(std::span(input.substr(0, some))), into.begin());
    input.remove_prefix(some);
    return some;
  });
  std::string out;
  while (out.size() < kMost) {
    const std::size_t had = out.size();
    out.resize(had + piece);
    const std::size_t got = unpacker.read(std::as_writable_bytes(std::span(out)).subspan(had));
    check(got <= piece, "more than was asked for");
    out.resize(had + got);
    if (got < piece) break;
  }
  out.resize(std::min(out.size(), kMost));
  return out;
}

void run(std::string_view input) {
  const std::string whole = unpacked(input, kMost);
  then([&] { check(unpacked(input, 37) == whole, "other pieces hold something else"); });
}

}  // namespace

const Target kTarget = {4 << 20, 256, run};

}  // namespace tessera::fuzz
