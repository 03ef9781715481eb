#pragma once
/// A client: a plugin's devices, in use by this process.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/pjrt/handle.h"

namespace tessera::pjrt {

/// How processes tell each other what their clients need to meet: a text under a name. Called from
/// threads of the plugin, several at a time. A function that throws makes the plugin's call fail
/// with its message.
struct KeyValueStore {
  /// Waits until some process has put `key`. Errors: none came in time.
  std::function<std::string(const std::string& key, std::chrono::milliseconds time)> get;
  std::function<void(const std::string& key, const std::string& value)> put;
  /// Does not wait: nothing where nobody has put it yet.
  std::function<std::optional<std::string>(const std::string& key)> try_get;
};

/// Memory that a device can reach.
struct Memory {
  int id = 0;
  std::string kind;  // "device", "pinned_host", "unpinned_host", ...
  c::Memory* object = nullptr;
};

/// A device of a client, as it is for the client's whole life.
struct Device {
  int id = 0;            // among the devices of all processes
  int process = 0;       // which drives it
  bool local = false;    // this process does
  int hardware_id = -1;  // of a local device, its number on this host
  std::string kind;      // "cpu", "NVIDIA H100 80GB HBM3", ...
  std::string text;      // as the plugin prints it
  NamedValues attributes;
  std::vector<Memory> memories;  // of a local device
  std::string default_memory;    // the kind where buffers are made
  c::Device* object = nullptr;
};

/// Bytes; what a plugin does not tell is absent.
struct MemoryStats {
  std::int64_t in_use = 0;
  std::optional<std::int64_t> peak, limit, largest_free, pool;
};

/// Made once, used from all threads; copies are the same client, which lives as long as they, its
/// buffers and its executables do.
class Client {
 public:
  /// Options are the plugin's own: XLA's CPU takes "cpu_device_count" and ignores what it does not
  /// know; its CUDA refuses that. With several processes, `store` connects them; its functions
  /// may be empty where there is one.
  /// Errors: Fault::Usage: options. Fault::Resource: no driver, no device, no memory. Fault::Peer: a
  /// process that did not come.
  explicit Client(const Plugin& plugin, const NamedValues& options = {}, KeyValueStore store = {});

  const Plugin& plugin() const;
  const std::string& platform_name() const;     // "cpu", "cuda", "tpu", ...
  const std::string& platform_version() const;  // what a serialised executable depends on
  int process() const;
  /// Of all processes.
  std::span<const Device> devices() const;
  /// Of this one, in the order in which executables take them by default.
  std::span<const Device> local_devices() const;
  /// Errors: Fault::Usage: no device with that id.
  const Device& device(int id) const;
  /// What is in use now. Nothing where the plugin does not count.
  std::optional<MemoryStats> memory_stats(const Device& device) const;

  /// The object, and what keeps it alive; for this room alone.
  c::Client* object() const;
  std::shared_ptr<const void> life() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

/// The memory of that kind of a local device; an empty kind is the default. Errors: Fault::Usage: none
/// of that kind, with those that there are.
const Memory& memory_of(const Device& device, std::string_view kind);

}  // namespace tessera::pjrt
