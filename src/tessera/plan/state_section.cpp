#include "tessera/plan/state_section.h"

#include <bit>

#include "tessera/base/size.h"
#include "tessera/ops/collective.h"

namespace tessera {

Place StateSection::take(Memory memory, std::int64_t size) {
  std::int64_t& end = bytes[memory];
  const Place place{memory, Place::Section::State, end + guard_bytes};
  end = size_sum(end, aligned(size + 2 * guard_bytes), "bytes of all states");
  return place;
}

Place StateSection::place(const State& state, const Result& lies) {
  const auto [found, fresh] = by_path_.try_emplace(state.path, states.size());
  if (fresh)
    states.push_back({state, lies.type, take(memory_of(lies), lies.type.bytes()), lies.logical});
  const StatePlan& known = states[found->second];
  require(known.type == lies.type && known.state.home == state.home, "state '", state.path, "' is ",
          known.type, " in one program and ", lies.type, " in another");
  return known.place;
}

Place StateSection::constant(DType dtype, double value) {
  const auto [found, fresh] =
      by_bits_.try_emplace({dtype, std::bit_cast<std::uint64_t>(value)}, constants.size());
  if (fresh) constants.push_back({dtype, value, take(Memory::Device, size_of(dtype))});
  return constants[found->second].place;
}

}  // namespace tessera
