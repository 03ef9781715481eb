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

Place StateSection::take_for(const State& state, const Result& lies) {
  const Memory memory = memory_of(lies);
  const std::int64_t size = lies.type.bytes();
  if (state.role == Role::Copy) return take_for_copy(memory, size);
  if (memory != Memory::Device || !in_base_ || !in_base_(state)) return take(memory, size);
  const Place out{memory, Place::Section::Base, base_bytes};
  base_bytes = size_sum(base_bytes, aligned(size), "bytes of all states");
  return out;
}

Place StateSection::place(const State& state, const Result& lies) {
  const auto [found, fresh] = by_path_.try_emplace(state.path, states.size());
  if (fresh) {
    const Place place = take_for(state, lies);
    states.push_back({state, lies.type, place, lies.logical});
    if (state.role == Role::Copy) copies.push_back({state.path, place, lies.type.bytes()});
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
