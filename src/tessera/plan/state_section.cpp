#include "tessera/plan/state_section.h"

#include <bit>

#include "tessera/base/size.h"
#include "tessera/ops/collective.h"

namespace tessera {

std::int64_t StateSection::take_bytes(Memory memory, std::int64_t size) {
  const std::int64_t taken = aligned(size + 2 * guard_bytes);
  bytes[memory] = size_sum(bytes[memory], taken, "bytes of all states");
  return taken;
}

Place StateSection::take(Memory memory, std::int64_t size) {
  const std::int64_t end = bytes[memory] - copy_bytes_[memory];
  take_bytes(memory, size);
  return {memory, Place::Section::State, end + guard_bytes};
}

Place StateSection::take_for_copy(Memory memory, std::int64_t size) {
  copy_bytes_[memory] += take_bytes(memory, size);
  return {memory, Place::Section::Work, guard_bytes - copy_bytes_[memory]};
}

Place StateSection::place(const State& state, const Result& lies) {
  const auto [found, fresh] = by_path_.try_emplace(state.path, states.size());
  if (fresh) {
    const std::int64_t size = lies.type.bytes();
    const bool copy = state.role == Role::Copy;
    const Place place = copy ? take_for_copy(memory_of(lies), size) : take(memory_of(lies), size);
    states.push_back({state, lies.type, place, lies.logical});
    if (copy) copies.push_back({state.path, place, size});
  }
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
