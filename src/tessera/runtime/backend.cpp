#include "tessera/runtime/backend.h"

#include "tessera/runtime/executor.h"

namespace tessera {

std::unique_ptr<Engine> CpuBackend::start(Plan plan, Communicator* world,
                                          EngineOptions options) const {
  return std::make_unique<Executor>(std::move(plan), device_, world, options);
}

}  // namespace tessera
