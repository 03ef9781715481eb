#pragma once
/// The arguments of each call: one struct, of which the caller fills some fields and the plugin the
/// others. A field that an older plugin does not know keeps what it was made with, which is zero.

#include "tessera/pjrt/c/calls.h"
#include "tessera/pjrt/c/types.h"

namespace tessera::pjrt::c {

/// Of something: one answer. Most calls are that.
template <Call call, typename Of, typename Answer>
struct Get {
  static constexpr Call kCall = call;
  static constexpr std::size_t kSize = 24 + sizeof(Answer);
  Head head;
  Of* of = nullptr;
  Answer answer{};
};
/// To something: no answer.
template <Call call, typename Of>
struct Do {
  static constexpr Call kCall = call;
  static constexpr std::size_t kSize = 24;
  Head head;
  Of* of = nullptr;
};
/// Of something, with something else: one answer.
template <Call call, typename Of, typename With, typename Answer>
struct GetWith {
  static constexpr Call kCall = call;
  static constexpr std::size_t kSize = 40;
  Head head;
  Of* of = nullptr;
  With* with = nullptr;
  Answer* answer = nullptr;
};

/// Answers whose count comes first.
template <typename T>
struct CountedList {
  std::size_t count = 0;
  const T* items = nullptr;
};

using ErrorDestroy = Do<Call::ErrorDestroy, Error>;
using ErrorMessage = Get<Call::ErrorMessage, const Error, Text>;
using ErrorGetCode = Get<Call::ErrorGetCode, const Error, Code>;

struct PluginInitialize {
  static constexpr Call kCall = Call::PluginInitialize;
  static constexpr std::size_t kSize = 16;
  Head head;
};
struct PluginAttributes {
  static constexpr Call kCall = Call::PluginAttributes;
  static constexpr std::size_t kSize = 32;
  Head head;
  List<NamedValue> attributes;
};

using EventDestroy = Do<Call::EventDestroy, Event>;
using EventAwait = Do<Call::EventAwait, Event>;
struct EventOnReady {
  static constexpr Call kCall = Call::EventOnReady;
  static constexpr std::size_t kSize = 40;
  Head head;
  Event* event = nullptr;
  void (*listener)(Error*, void*) = nullptr;  // takes over the error
  void* listener_user = nullptr;
};

struct ClientCreate {
  static constexpr Call kCall = Call::ClientCreate;
  static constexpr std::size_t kSize = 88;
  Head head;
  List<NamedValue> options;
  Error* (*get)(KeyValueGet*) = nullptr;
  void* get_user = nullptr;
  Error* (*put)(KeyValuePut*) = nullptr;
  void* put_user = nullptr;
  Client* client = nullptr;  // out
  Error* (*try_get)(KeyValueTryGet*) = nullptr;
  void* try_get_user = nullptr;
};
using ClientDestroy = Do<Call::ClientDestroy, Client>;
using ClientPlatformName = Get<Call::ClientPlatformName, Client, Text>;
using ClientPlatformVersion = Get<Call::ClientPlatformVersion, Client, Text>;
using ClientProcessIndex = Get<Call::ClientProcessIndex, Client, int>;
using ClientDevices = Get<Call::ClientDevices, Client, List<Device*>>;
using ClientAddressableDevices = Get<Call::ClientAddressableDevices, Client, List<Device*>>;
struct ClientCompile {
  static constexpr Call kCall = Call::ClientCompile;
  static constexpr std::size_t kSize = 56;
  Head head;
  Client* client = nullptr;
  const Program* program = nullptr;
  Text options;
  LoadedExecutable* executable = nullptr;  // out
};
struct ClientBufferFromHostBuffer {
  static constexpr Call kCall = Call::ClientBufferFromHostBuffer;
  static constexpr std::size_t kSize = 120;
  Head head;
  Client* client = nullptr;
  const void* data = nullptr;
  ElementType type = ElementType::F32;
  List<std::int64_t> dims;
  List<std::int64_t> byte_strides;
  HostBuffer semantics = HostBuffer::OnlyDuringCall;
  Device* device = nullptr;
  Memory* memory = nullptr;  // null: the device's default
  MemoryLayout* layout = nullptr;
  Event* done_with_data = nullptr;  // out
  Buffer* buffer = nullptr;         // out
};

using DeviceGetDescription = Get<Call::DeviceGetDescription, Device, DeviceDescription*>;
using DeviceIsAddressable = Get<Call::DeviceIsAddressable, Device, Truth>;
using DeviceLocalHardwareId = Get<Call::DeviceLocalHardwareId, Device, int>;
using DeviceAddressableMemories = Get<Call::DeviceAddressableMemories, Device, List<Memory*>>;
using DeviceDefaultMemory = Get<Call::DeviceDefaultMemory, Device, Memory*>;
using DeviceDescriptionId = Get<Call::DeviceDescriptionId, DeviceDescription, int>;
using DeviceDescriptionProcessIndex =
    Get<Call::DeviceDescriptionProcessIndex, DeviceDescription, int>;
using DeviceDescriptionKind = Get<Call::DeviceDescriptionKind, DeviceDescription, Text>;
using DeviceDescriptionToString = Get<Call::DeviceDescriptionToString, DeviceDescription, Text>;
using DeviceDescriptionAttributes =
    Get<Call::DeviceDescriptionAttributes, DeviceDescription, CountedList<NamedValue>>;
using MemoryId = Get<Call::MemoryId, Memory, int>;
using MemoryKind = Get<Call::MemoryKind, Memory, Text>;

struct MaybeBytes {
  std::int64_t bytes = 0;
  Truth set = 0;
};
struct DeviceMemoryStats {
  static constexpr Call kCall = Call::DeviceMemoryStats;
  static constexpr std::size_t kSize = 185;
  Head head;
  Device* device = nullptr;
  std::int64_t bytes_in_use = 0;
  MaybeBytes peak_bytes_in_use, num_allocations, largest_allocation, limit, reserved, peak_reserved,
      reservable_limit, largest_free_block, pool, peak_pool;
};

using ExecutableDestroy = Do<Call::ExecutableDestroy, Executable>;
using ExecutableName = Get<Call::ExecutableName, Executable, Text>;
using ExecutableFingerprint = Get<Call::ExecutableFingerprint, Executable, Text>;
using ExecutableNumReplicas = Get<Call::ExecutableNumReplicas, Executable, std::size_t>;
using ExecutableNumPartitions = Get<Call::ExecutableNumPartitions, Executable, std::size_t>;
using ExecutableNumOutputs = Get<Call::ExecutableNumOutputs, Executable, std::size_t>;
using ExecutableGetCostAnalysis =
    Get<Call::ExecutableGetCostAnalysis, Executable, CountedList<NamedValue>>;
using ExecutableOutputElementTypes =
    Get<Call::ExecutableOutputElementTypes, Executable, List<ElementType>>;
/// Dims of all outputs behind each other, and how many each has.
struct OutputDims {
  std::size_t count = 0;
  const std::int64_t* dims = nullptr;
  const std::size_t* ndims = nullptr;
};
using ExecutableOutputDimensions = Get<Call::ExecutableOutputDimensions, Executable, OutputDims>;
struct OutputKinds {
  std::size_t count = 0;
  const char* const* kinds = nullptr;
  const std::size_t* sizes = nullptr;
};
using ExecutableOutputMemoryKinds = Get<Call::ExecutableOutputMemoryKinds, Executable, OutputKinds>;
/// The program's code is written where it has a place, else its size is.
using ExecutableOptimizedProgram = Get<Call::ExecutableOptimizedProgram, Executable, Program*>;
struct CompiledBytes {
  std::int64_t generated_code = 0, argument = 0, output = 0, alias = 0, temp = 0;
  std::int64_t host_generated_code = 0, host_argument = 0, host_output = 0, host_alias = 0,
               host_temp = 0;
  std::int64_t peak = 0;
};
using ExecutableGetCompiledMemoryStats =
    Get<Call::ExecutableGetCompiledMemoryStats, Executable, CompiledBytes>;
struct Serialized {
  Text bytes;  // live until they are deleted
  SerializedExecutable* owner = nullptr;
  void (*delete_owner)(SerializedExecutable*) = nullptr;
};
using ExecutableSerialize = Get<Call::ExecutableSerialize, const Executable, Serialized>;
struct ExecutableDeserializeAndLoad {
  static constexpr Call kCall = Call::ExecutableDeserializeAndLoad;
  static constexpr std::size_t kSize = 64;
  Head head;
  Client* client = nullptr;
  Text bytes;
  LoadedExecutable* executable = nullptr;  // out
  Text options;                            // empty: as compiled
};

using LoadedExecutableDestroy = Do<Call::LoadedExecutableDestroy, LoadedExecutable>;
using LoadedExecutableGetExecutable =
    Get<Call::LoadedExecutableGetExecutable, LoadedExecutable, Executable*>;
using LoadedExecutableAddressableDevices =
    Get<Call::LoadedExecutableAddressableDevices, LoadedExecutable, List<Device*>>;
struct ExecuteOptions {
  static constexpr std::size_t kSize = 112;
  Head head;
  void* send_callbacks = nullptr;
  void* receive_callbacks = nullptr;
  std::size_t num_sends = 0, num_receives = 0;
  int launch_id = 0;
  List<std::int64_t> not_donated;
  void* context = nullptr;
  const char* call_location = nullptr;
  std::size_t num_tasks = 0;
  int* task_ids = nullptr;
  std::int64_t* incarnation_ids = nullptr;
};
struct LoadedExecutableExecute {
  static constexpr Call kCall = Call::LoadedExecutableExecute;
  static constexpr std::size_t kSize = 80;
  Head head;
  LoadedExecutable* executable = nullptr;
  ExecuteOptions* options = nullptr;
  Buffer* const* const* arguments = nullptr;  // [device][argument]
  std::size_t num_devices = 0, num_arguments = 0;
  Buffer** const* outputs = nullptr;  // [device][output]; the plugin fills the inner lists
  Event** done = nullptr;             // [device], likewise
  Device* device = nullptr;           // null: those that it was compiled for
};

using BufferDestroy = Do<Call::BufferDestroy, Buffer>;
using BufferDelete = Do<Call::BufferDelete, Buffer>;
using BufferIsDeleted = Get<Call::BufferIsDeleted, Buffer, Truth>;
using BufferElementType = Get<Call::BufferElementType, Buffer, ElementType>;
using BufferDimensions = Get<Call::BufferDimensions, Buffer, List<std::int64_t>>;
using BufferOnDeviceSizeInBytes = Get<Call::BufferOnDeviceSizeInBytes, Buffer, std::size_t>;
using BufferDevice = Get<Call::BufferDevice, Buffer, Device*>;
using BufferMemory = Get<Call::BufferMemory, Buffer, Memory*>;
using BufferReadyEvent = Get<Call::BufferReadyEvent, Buffer, Event*>;
using BufferCopyToDevice = GetWith<Call::BufferCopyToDevice, Buffer, Device, Buffer>;
using BufferCopyToMemory = GetWith<Call::BufferCopyToMemory, Buffer, Memory, Buffer>;
struct BufferToHostBuffer {
  static constexpr Call kCall = Call::BufferToHostBuffer;
  static constexpr std::size_t kSize = 56;
  Head head;
  Buffer* buffer = nullptr;
  MemoryLayout* layout = nullptr;  // null: the buffer's own
  void* data = nullptr;
  std::size_t size = 0;
  Event* event = nullptr;  // out
};

struct TopologyDescriptionCreate {
  static constexpr Call kCall = Call::TopologyDescriptionCreate;
  static constexpr std::size_t kSize = 56;
  Head head;
  Text name;
  List<NamedValue> options;
  TopologyDescription* topology = nullptr;  // out
};
using TopologyDescriptionDestroy = Do<Call::TopologyDescriptionDestroy, TopologyDescription>;
using TopologyDescriptionPlatformName =
    Get<Call::TopologyDescriptionPlatformName, const TopologyDescription, Text>;
using TopologyDescriptionPlatformVersion =
    Get<Call::TopologyDescriptionPlatformVersion, TopologyDescription, Text>;
using TopologyDescriptionGetDeviceDescriptions =
    Get<Call::TopologyDescriptionGetDeviceDescriptions, const TopologyDescription,
        List<DeviceDescription*>>;
struct Compile {
  static constexpr Call kCall = Call::Compile;
  static constexpr std::size_t kSize = 64;
  Head head;
  const TopologyDescription* topology = nullptr;
  const Program* program = nullptr;
  Text options;
  Client* client = nullptr;
  Executable* executable = nullptr;  // out
};

}  // namespace tessera::pjrt::c
