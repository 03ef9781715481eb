/// Clients, which meet by the key-value store, their devices, and devices that are only described.

#include <cstring>
#include <thread>

#include "pjrt/plugin/objects.h"

namespace tessera::pjrt::c {

namespace {

struct Wanted {
  std::int64_t device_count = control().devices, node_id = 0, num_nodes = 1;
};

/// Options: device_count, node_id, num_nodes; fail_at and fail_code for callers without a Control.
Error* read_options(List<NamedValue> options, Wanted& wanted) {
  for (std::size_t i = 0; i < options.count; ++i) {
    const NamedValue& option = options.items[i];
    const std::string name(option.name.data, option.name.size);
    if (!control().joins && (name == "node_id" || name == "num_nodes")) continue;
    if (name == "device_count") {
      wanted.device_count = option.int64;
    } else if (name == "node_id") {
      wanted.node_id = option.int64;
    } else if (name == "num_nodes") {
      wanted.num_nodes = option.int64;
    } else if (name == "fail_at") {
      control().fail_at.assign(option.string, option.count);
    } else if (name == "fail_code") {
      control().fail_code = static_cast<Code>(option.int64);
    } else {
      return error(Code::InvalidArgument, "no option " + name);
    }
  }
  return nullptr;
}

std::unique_ptr<Device> make_device(int id, int process, bool local) {
  auto out = std::make_unique<Device>();
  out->description.id = id;
  out->description.process = process;
  out->local = local;
  for (const char* const kind : {"device", "pinned_host"}) {
    auto memory = std::make_unique<Memory>();
    memory->id = 2 * id + static_cast<int>(out->memories.size());
    memory->kind = kind;
    out->memory_list.push_back(memory.get());
    out->memories.push_back(std::move(memory));
  }
  NamedValue core;
  core.head.size = NamedValue::kSize;
  core.name = {"core", 4};
  core.kind = ValueKind::Int64;
  core.int64 = id;
  core.count = 1;
  out->description.attributes.push_back(core);
  return out;
}

Error* make_callback_error(Code code, const char* message, std::size_t size) {
  return error(code, std::string(message, size));
}
MakeError callback_error = make_callback_error;

/// What process `node` has put.
Error* ask(const ClientCreate& create, std::int64_t node, std::string& value) {
  const std::string key = "node/" + std::to_string(node);
  KeyValueGet get;
  get.head.size = KeyValueGet::kSize;
  get.key = said(key);
  get.timeout_milliseconds = 2000;
  get.make_error = &callback_error;
  get.user = create.get_user;
  if (Error* const failed = create.get(&get)) return failed;
  value.assign(get.value, get.value_size);
  get.delete_value(get.value);
  return nullptr;
}

/// How many devices each process has.
Error* meet(const ClientCreate& create, const Wanted& wanted, std::vector<int>& counts) {
  counts.assign(1, static_cast<int>(wanted.device_count));
  if (wanted.num_nodes == 1) return nullptr;
  if (create.get == nullptr || create.put == nullptr || create.try_get == nullptr) {
    return error(Code::InvalidArgument, "several nodes need a key-value store");
  }
  KeyValueTryGet early;
  early.head.size = KeyValueTryGet::kSize;
  early.key = {"nobody", 6};
  early.make_error = &callback_error;
  early.user = create.try_get_user;
  Error* const none = create.try_get(&early);
  if (none == nullptr) {
    early.delete_value(early.value);
    return error(Code::Internal, "somebody put what nobody does");
  }
  if (none->code != Code::NotFound) return none;
  delete none;
  const std::string key = "node/" + std::to_string(wanted.node_id);
  const std::string value = std::to_string(wanted.device_count) + std::string("\0 devices", 9);
  KeyValuePut put;
  put.head.size = KeyValuePut::kSize;
  put.key = said(key);
  put.value = said(value);
  put.make_error = &callback_error;
  put.user = create.put_user;
  if (Error* const failed = create.put(&put)) return failed;
  counts.clear();
  for (std::int64_t node = 0; node < wanted.num_nodes; ++node) {
    std::string told;
    if (Error* const failed = ask(create, node, told)) return failed;
    if (told.size() < 10) return error(Code::DataLoss, "the value lost what is behind its NUL");
    counts.push_back(std::stoi(told));
  }
  return nullptr;
}

Error* create_client(ClientCreate* create) {
  Wanted wanted;
  if (Error* const failed = read_options(create->options, wanted)) return failed;
  std::vector<int> counts;
  if (Error* const failed = meet(*create, wanted, counts)) return failed;
  auto client = std::make_unique<Client>();
  client->process = static_cast<int>(wanted.node_id);
  for (std::size_t process = 0; process < counts.size(); ++process) {
    const bool local = counts.size() == 1 || static_cast<int>(process) == client->process;
    for (int i = 0; i < counts[process]; ++i) {
      const int id = static_cast<int>(client->owned.size());
      client->owned.push_back(make_device(id, static_cast<int>(process), local));
      client->devices.push_back(client->owned.back().get());
      if (local) client->local.push_back(client->owned.back().get());
    }
  }
  create->client = client.release();
  return nullptr;
}

Error* destroy_client(ClientDestroy* of) {
  while (control().keep_clients) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  delete of->of;
  return nullptr;
}
Error* platform_name(ClientPlatformName* of) {
  of->answer = said(control().platform);
  return nullptr;
}
Error* platform_version(ClientPlatformVersion* of) {
  of->answer = said(of->of->platform_version);
  return nullptr;
}
Error* process_index(ClientProcessIndex* of) {
  of->answer = of->of->process;
  return nullptr;
}
Error* all_devices(ClientDevices* of) {
  of->answer = {of->of->devices.data(), of->of->devices.size()};
  return nullptr;
}
Error* local_devices(ClientAddressableDevices* of) {
  of->answer = {of->of->local.data(), of->of->local.size()};
  return nullptr;
}

Error* description(DeviceGetDescription* of) {
  of->answer = &of->of->description;
  return nullptr;
}
Error* is_local(DeviceIsAddressable* of) {
  of->answer = of->of->local;
  return nullptr;
}
Error* hardware_id(DeviceLocalHardwareId* of) {
  of->answer = of->of->description.id;
  return nullptr;
}
Error* memories(DeviceAddressableMemories* of) {
  of->answer = {of->of->memory_list.data(), of->of->memory_list.size()};
  return nullptr;
}
Error* default_memory(DeviceDefaultMemory* of) {
  of->answer = of->of->memory_list[0];
  return nullptr;
}
Error* memory_stats(DeviceMemoryStats* of) {
  of->bytes_in_use = 5;
  of->limit = {1000, true};
  return nullptr;
}
Error* description_id(DeviceDescriptionId* of) {
  of->answer = of->of->id;
  return nullptr;
}
Error* description_process(DeviceDescriptionProcessIndex* of) {
  of->answer = of->of->process;
  return nullptr;
}
Error* description_kind(DeviceDescriptionKind* of) {
  of->answer = said(of->of->kind);
  return nullptr;
}
Error* description_text(DeviceDescriptionToString* of) {
  of->answer = said(of->of->text);
  return nullptr;
}
Error* description_attributes(DeviceDescriptionAttributes* of) {
  of->answer = {of->of->attributes.size(), of->of->attributes.data()};
  return nullptr;
}
Error* memory_id(MemoryId* of) {
  of->answer = of->of->id;
  return nullptr;
}
Error* memory_kind(MemoryKind* of) {
  of->answer = said(of->of->kind);
  return nullptr;
}

Error* create_topology(TopologyDescriptionCreate* create) {
  Wanted wanted;
  if (Error* const failed = read_options(create->options, wanted)) return failed;
  auto out = std::make_unique<TopologyDescription>();
  for (int id = 0; id < wanted.device_count; ++id) {
    out->owned.push_back(std::make_unique<DeviceDescription>());
    out->owned.back()->id = id;
    out->devices.push_back(out->owned.back().get());
  }
  create->topology = out.release();
  return nullptr;
}
Error* destroy_topology(TopologyDescriptionDestroy* of) {
  delete of->of;
  return nullptr;
}
Error* topology_name(TopologyDescriptionPlatformName* of) {
  of->answer = {"test", 4};
  return nullptr;
}
Error* topology_version(TopologyDescriptionPlatformVersion* of) {
  of->answer = {"test 1", 6};
  return nullptr;
}
Error* topology_devices(TopologyDescriptionGetDeviceDescriptions* of) {
  of->answer = {of->of->devices.data(), of->of->devices.size()};
  return nullptr;
}

}  // namespace

void add_client_calls(Api& api) {
  add<create_client>(api);
  add<destroy_client>(api);
  add<platform_name>(api);
  add<platform_version>(api);
  add<process_index>(api);
  add<all_devices>(api);
  add<local_devices>(api);
  add<description>(api);
  add<is_local>(api);
  add<hardware_id>(api);
  add<memories>(api);
  add<default_memory>(api);
  add<memory_stats>(api);
  add<description_id>(api);
  add<description_process>(api);
  add<description_kind>(api);
  add<description_text>(api);
  add<description_attributes>(api);
  add<memory_id>(api);
  add<memory_kind>(api);
  add<create_topology>(api);
  add<destroy_topology>(api);
  add<topology_name>(api);
  add<topology_version>(api);
  add<topology_devices>(api);
}

}  // namespace tessera::pjrt::c
