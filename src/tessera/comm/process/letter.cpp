#include "tessera/comm/process/letter.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace tessera::process {

namespace {

/// The last char stays 0.
template <std::size_t N>
void put(std::array<char, N>& to, std::string_view from) {
  const std::size_t n = std::min(from.size(), N - 1);
  std::memcpy(to.data(), from.data(), n);
  std::fill(to.begin() + static_cast<std::ptrdiff_t>(n), to.end(), '\0');
}

}  // namespace

std::uint64_t id_of(const Group& group) {
  std::uint64_t h = 0x243f6a8885a308d3u;
  const auto mix = [&](std::uint64_t value) {
    h = (h ^ value) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
  };
  for (const char c : group.name) mix(static_cast<unsigned char>(c));
  for (const int rank : group.ranks) mix(static_cast<std::uint64_t>(rank) + 256);
  mix(static_cast<std::uint64_t>(group.messages));
  return h;
}

void Header::fill(const Collective& c, const Group& of, std::uint64_t group_id, Number call,
                  std::int64_t at_step) {
  number = call, group = group_id, signature = backend::signature(c), step = at_step;
  kind = c.kind, dtype = c.dtype, monoid = c.monoid, peer = c.peer;
  gather = static_cast<std::int8_t>(c.gather), scatter = static_cast<std::int8_t>(c.scatter);
  ndim = static_cast<std::int8_t>(c.whole.ndim());
  std::copy(c.whole.begin(), c.whole.end(), whole.begin());
  put(group_name, of.name);
  put(name, c.name);
}

Shape Header::shape() const {
  Shape out;
  for (int d = 0; d < ndim; ++d) out.push_back(whole[static_cast<std::size_t>(d)]);
  return out;
}

Collective Header::collective() const {
  return {kind, dtype, monoid, gather, scatter, peer, shape(), name.data()};
}

void Header::show(Seen& seen) const {
  seen.step = step, seen.kind = kind, seen.number = number;
  seen.group = group_name.data(), seen.name = name.data();
}

void Notice::write(const std::string& text) { put(words, text); }

}  // namespace tessera::process
