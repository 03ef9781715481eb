#include "tessera/comm/process/letter.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "tessera/base/error.h"

namespace tessera::process {

namespace {

/// The last char stays 0.
template <std::size_t N>
void put(std::array<char, N>& to, std::string_view from) {
  const std::size_t n = std::min(from.size(), N - 1);
  std::memcpy(to.data(), from.data(), n);
  std::fill(to.begin() + static_cast<std::ptrdiff_t>(n), to.end(), '\0');
}

template <std::size_t N>
bool ends(const std::array<char, N>& words) {
  return std::find(words.begin(), words.end(), '\0') != words.end();
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

std::string Header::problem() const {
  const auto is_dim = [&](std::int8_t dim) { return dim >= -1 && dim < ndim; };
  if (number == 0) return "a letter without a number";
  if (static_cast<int>(kind) >= kNumCollectiveKinds)
    return text("a collective of kind ", static_cast<int>(kind));
  if (static_cast<int>(dtype) > static_cast<int>(DType::Bool))
    return text("elements of type ", static_cast<int>(dtype));
  if (static_cast<int>(monoid) > static_cast<int>(Monoid::Min))
    return text("a reduction of kind ", static_cast<int>(monoid));
  if (ndim < 0 || ndim > Shape::kMaxDims) return text("a tensor of ", ndim, " dims");
  if (!is_dim(gather) || !is_dim(scatter) || peer < -1)
    return text("dims ", gather, " and ", scatter, " of ", ndim, ", and the member ", peer);
  for (int d = 0; d < ndim; ++d) {
    const std::int64_t size = whole[static_cast<std::size_t>(d)];
    if (size < 0) return text("a dim of size ", size);
  }
  return ends(group_name) && ends(name) ? "" : "a name without an end";
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

std::string Notice::problem(int ranks) const {
  if (kind < Leaving || kind > Alive) return text("a notice of kind ", static_cast<int>(kind));
  if (rank < 0 || rank >= ranks) return text("a notice of rank ", rank, " of ", ranks);
  if (kind == Alive) return {};  // the rest does not come along
  if (fault < static_cast<int>(Fault::Usage) || fault > static_cast<int>(Fault::Internal))
    return text("a notice of a fault ", fault);
  if (told_by_others > 1) return text("a notice with ", told_by_others, " for true or false");
  return ends(words) ? "" : "a notice without an end";
}

void Notice::write(const std::string& text) { put(words, text); }

}  // namespace tessera::process
