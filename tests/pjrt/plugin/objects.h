#pragma once
/// The objects of a plugin whose devices are memory of this process.

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pjrt/plugin/control.h"

namespace tessera::pjrt {

Control& control();

/// Counted while it lives.
struct Counted {
  Counted() { ++control().alive; }
  Counted(const Counted&) = delete;
  ~Counted() { --control().alive; }
};

struct TensorText {
  c::ElementType type = c::ElementType::F32;
  std::vector<std::int64_t> dims;
  int taken = -1;  // of a result: the argument whose memory it takes over; -1: of none
};

/// What a program does, what it is called with, and where it runs.
struct ProgramText {
  std::string text;  // "identity", "add", "sum", "step" or a module
  std::vector<TensorText> results = {{c::ElementType::F32, {2, 3}}};
  bool is_module = false;
  int num_replicas = 1;
  std::vector<int> device_ids;  // of the replicas
  std::vector<std::string> flags;
};

}  // namespace tessera::pjrt

namespace tessera::pjrt::c {

struct Error : Counted {
  Code code = Code::Internal;
  std::string message;
};
/// What an event is the end of.
struct Work {
  bool of_execution = false;
  int device = -1;  // of an execution
  std::chrono::steady_clock::time_point ready = std::chrono::steady_clock::now();
};
struct Event : Counted {
  Work work;
};
struct Memory {
  int id = 0;
  std::string kind;
};
struct DeviceDescription {
  int id = 0, process = 0;
  std::string kind = "test", text = "TestDevice";
  std::vector<NamedValue> attributes;
};
struct Device {
  DeviceDescription description;
  bool local = true;
  std::vector<std::unique_ptr<Memory>> memories;
  std::vector<Memory*> memory_list;
};
struct Client : Counted {
  int process = 0;
  std::string platform_version = "test 1";
  std::vector<std::unique_ptr<Device>> owned;
  std::vector<Device*> devices, local;
};
struct Buffer : Counted {
  ElementType type = ElementType::F32;
  std::vector<std::int64_t> dims;
  std::vector<char> bytes;
  Device* device = nullptr;
  Memory* memory = nullptr;
  bool deleted = false;

  ~Buffer() { give(); }
  /// Bytes count on the device from where it takes them to where it gives them away.
  void take(std::vector<char> more) {
    bytes = std::move(more);
    count(static_cast<std::int64_t>(bytes.size()));
  }
  std::vector<char> give() {
    count(-static_cast<std::int64_t>(bytes.size()));
    return std::exchange(bytes, {});
  }

 private:
  void count(std::int64_t more) {
    const auto id = static_cast<std::size_t>(device == nullptr ? -1 : device->description.id);
    if (id >= control().bytes.size()) return;
    const std::int64_t now = control().bytes[id] += more;
    std::atomic<std::int64_t>& most = control().most_bytes[id];
    for (std::int64_t known = most; known < now && !most.compare_exchange_weak(known, now);) {
    }
  }
};
struct Executable : Counted {
  ProgramText program;
  std::vector<ElementType> types;  // of the results, as they were told last; so are the next two
  std::vector<std::int64_t> dims;
  std::vector<std::size_t> ndims;
};
struct LoadedExecutable : Counted {
  ProgramText program;
  Client* client = nullptr;
  std::vector<Device*> devices;
};
struct SerializedExecutable : Counted {
  std::string bytes;
};
struct TopologyDescription : Counted {
  std::vector<std::unique_ptr<DeviceDescription>> owned;
  std::vector<DeviceDescription*> devices;
};

/// Bytes of a tensor; 0 where an element type is none.
std::size_t bytes_of(ElementType type, const std::vector<std::int64_t>& dims);

inline Error* error(Code code, std::string message) {
  auto* const out = new Error;
  out->code = code;
  out->message = std::move(message);
  return out;
}

/// Every call goes through here: it fails if its arguments are smaller than they were when this
/// plugin was written, or if it is to fail. One that destroys does so first.
Error* refuse(Call call, std::size_t size, std::size_t least);

template <auto function, typename Arguments>
Error* guarded(Arguments* arguments) {
  Error* const refused = refuse(Arguments::kCall, arguments->head.size, Arguments::kSize);
  const bool destroys = name_of(Arguments::kCall).ends_with("Destroy");
  if (refused != nullptr && !destroys) return refused;
  Error* const failed = function(arguments);
  return refused != nullptr ? refused : failed;
}
template <auto function, typename Arguments>
void add_as(Api& api, Error* (*)(Arguments*)) {
  api.calls[static_cast<std::size_t>(Arguments::kCall)] =
      reinterpret_cast<void (*)()>(&guarded<function, Arguments>);
}
/// Puts a function where its call is.
template <auto function>
void add(Api& api) {
  add_as<function>(api, function);
}

void add_client_calls(Api& api);
void add_buffer_calls(Api& api);
void add_program_calls(Api& api);

inline Text said(const std::string& text) { return {text.data(), text.size()}; }

}  // namespace tessera::pjrt::c
