#include "tessera/runtime/choices.h"

namespace tessera {

CpuChoices common_choices(const CpuChoices& mine, Communicator* world) {
  if (world == nullptr) return mine;
  auto lowest = static_cast<std::int32_t>(mine.isa);
  world->run(Collective::all_reduce(DType::I32, {1}, Monoid::Min, "instruction set"), &lowest,
             &lowest);
  std::int32_t pack = mine.pack_weights ? 1 : 0;
  world->run(Collective::broadcast(DType::I32, {1}, 0, "packing of weights"), &pack, &pack);
  return {static_cast<Isa>(lowest), pack != 0};
}

}  // namespace tessera
