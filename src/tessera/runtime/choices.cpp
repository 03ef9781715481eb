#include "tessera/runtime/choices.h"

namespace tessera {

CpuChoices common_choices(const CpuChoices& mine, Communicator* world) {
  if (world == nullptr) return mine;
  auto lowest = static_cast<std::int32_t>(mine.isa);
  world->run(Collective::all_reduce(DType::I32, {1}, Monoid::Min, "instruction set"), &lowest,
             &lowest);
  std::int32_t of_first[] = {mine.pack_weights, static_cast<std::int32_t>(mine.f32_products)};
  world->run(Collective::broadcast(DType::I32, {2}, 0, "packing of weights and f32 products"),
             of_first, of_first);
  const CpuChoices first = {Isa::Amx, of_first[0] != 0, static_cast<F32Products>(of_first[1])};
  return first.at_most(static_cast<Isa>(lowest));
}

}  // namespace tessera
