#include "tessera/pjrt/client.h"

#include <algorithm>

#include "tessera/pjrt/c/call.h"
#include "tessera/pjrt/c/key_value.h"

namespace tessera::pjrt {

/// Members are destroyed in the opposite order: the plugin's client before the store that it calls.
struct Client::State {
  const Plugin& plugin;
  KeyValueStore store;
  Handle<c::Client> client;
  std::string platform_name, platform_version;
  int process = 0;
  std::vector<Device> devices, local_devices;
};

namespace {

Handle<c::Client> create(const Plugin& plugin, const NamedValues& options, KeyValueStore& store) {
  const std::vector<c::NamedValue> views = c::views(options);
  auto create = c::arguments<c::ClientCreate>();
  create.options = {views.data(), views.size()};
  c::connect(create, store);
  c::call(plugin, create);
  return Handle<c::Client>(plugin, create.client);
}

Memory read_memory(const Plugin& plugin, c::Memory* memory) {
  return {c::get<c::MemoryId>(plugin, memory), c::get_text<c::MemoryKind>(plugin, memory), memory};
}

Device read_device(const Plugin& plugin, c::Device* device) {
  c::DeviceDescription* const description = c::get<c::DeviceGetDescription>(plugin, device);
  Device out;
  out.object = device;
  out.id = c::get<c::DeviceDescriptionId>(plugin, description);
  out.process = c::get<c::DeviceDescriptionProcessIndex>(plugin, description);
  out.kind = c::get_text<c::DeviceDescriptionKind>(plugin, description);
  out.text = c::get_text<c::DeviceDescriptionToString>(plugin, description);
  out.attributes = c::attributes_of(plugin, description);
  out.local = c::get<c::DeviceIsAddressable>(plugin, device) != 0;
  if (!out.local) return out;
  out.hardware_id = c::get<c::DeviceLocalHardwareId>(plugin, device);
  const auto memories = c::get<c::DeviceAddressableMemories>(plugin, device);
  for (c::Memory* const memory : c::checked(plugin, c::Call::DeviceAddressableMemories, memories)) {
    out.memories.push_back(read_memory(plugin, memory));
  }
  c::Memory* const standard = c::get<c::DeviceDefaultMemory>(plugin, device);
  out.default_memory = read_memory(plugin, standard).kind;
  return out;
}

}  // namespace

Client::Client(const Plugin& plugin, const NamedValues& options, KeyValueStore store) {
  const auto state =
      std::make_shared<State>(State{plugin, std::move(store), {}, {}, {}, 0, {}, {}});
  state->client = create(plugin, options, state->store);
  c::Client* const client = state->client.get();
  state->platform_name = c::get_text<c::ClientPlatformName>(plugin, client);
  state->platform_version = c::get_text<c::ClientPlatformVersion>(plugin, client);
  state->process = c::get<c::ClientProcessIndex>(plugin, client);
  const auto all = c::get<c::ClientDevices>(plugin, client);
  for (c::Device* const device : c::checked(plugin, c::Call::ClientDevices, all)) {
    state->devices.push_back(read_device(plugin, device));
  }
  const auto local = c::get<c::ClientAddressableDevices>(plugin, client);
  for (c::Device* const device : c::checked(plugin, c::Call::ClientAddressableDevices, local)) {
    state->local_devices.push_back(read_device(plugin, device));
  }
  state_ = state;
}

const Plugin& Client::plugin() const { return state_->plugin; }
const std::string& Client::platform_name() const { return state_->platform_name; }
const std::string& Client::platform_version() const { return state_->platform_version; }
int Client::process() const { return state_->process; }
std::span<const Device> Client::devices() const { return state_->devices; }
std::span<const Device> Client::local_devices() const { return state_->local_devices; }
c::Client* Client::object() const { return state_->client.get(); }
std::shared_ptr<const void> Client::life() const { return state_; }

const Device& Client::device(int id) const {
  for (const Device& device : state_->devices) {
    if (device.id == id) return device;
  }
  fail(Fault::Usage, plugin().file(), ": no device with the id ", id, " among ", devices().size(),
       "; take one of the client's");
}

std::optional<MemoryStats> Client::memory_stats(const Device& device) const {
  auto stats = c::arguments<c::DeviceMemoryStats>();
  stats.device = device.object;
  if (!device.local || !c::call_if_there(plugin(), stats)) return std::nullopt;
  const auto if_set = [](const c::MaybeBytes& value) -> std::optional<std::int64_t> {
    return value.set != 0 ? std::optional(value.bytes) : std::nullopt;
  };
  return MemoryStats{stats.bytes_in_use, if_set(stats.peak_bytes_in_use), if_set(stats.limit),
                     if_set(stats.largest_free_block), if_set(stats.pool)};
}

const Memory& memory_of(const Device& device, std::string_view kind) {
  if (kind.empty()) kind = device.default_memory;
  for (const Memory& memory : device.memories) {
    if (memory.kind == kind) return memory;
  }
  std::vector<std::string> kinds;
  for (const Memory& memory : device.memories) kinds.push_back(memory.kind);
  fail(Fault::Usage, "device ", device.id, " (", device.kind, ") has no memory of the kind ", kind,
       device.local ? text("; it has ", join(kinds)) : text("; another process drives it"));
}

}  // namespace tessera::pjrt
