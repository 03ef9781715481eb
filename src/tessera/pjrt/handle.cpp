#include "tessera/pjrt/handle.h"

#include "tessera/pjrt/c/call.h"

namespace tessera::pjrt {

void destroy(const Plugin& plugin, c::Event* event) noexcept {
  c::end<c::EventDestroy>(plugin, event);
}
void destroy(const Plugin& plugin, c::Client* client) noexcept {
  c::end<c::ClientDestroy>(plugin, client);
}
void destroy(const Plugin& plugin, c::Buffer* buffer) noexcept {
  c::end<c::BufferDestroy>(plugin, buffer);
}
void destroy(const Plugin& plugin, c::Executable* executable) noexcept {
  c::end<c::ExecutableDestroy>(plugin, executable);
}
void destroy(const Plugin& plugin, c::LoadedExecutable* executable) noexcept {
  c::end<c::LoadedExecutableDestroy>(plugin, executable);
}
void destroy(const Plugin& plugin, c::TopologyDescription* topology) noexcept {
  c::end<c::TopologyDescriptionDestroy>(plugin, topology);
}

}  // namespace tessera::pjrt
