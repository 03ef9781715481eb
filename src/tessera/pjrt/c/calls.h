#pragma once
/// The calls of PJRT's C interface that Tessera makes: which place of a plugin's table holds them, and
/// what they are called in messages.
/// Source: the interface's order, which versions only append to (checked against the header of a
/// wheel: tests/pjrt/against/header.cpp).

#include <cstddef>
#include <span>
#include <string_view>

namespace tessera::pjrt::c {

/// The value is the call's place in the table.
enum class Call : std::size_t {
  ErrorDestroy = 0,
  ErrorMessage = 1,
  ErrorGetCode = 2,
  PluginInitialize = 3,
  PluginAttributes = 4,
  EventDestroy = 5,
  EventAwait = 8,
  EventOnReady = 9,
  ClientCreate = 10,
  ClientDestroy = 11,
  ClientPlatformName = 12,
  ClientProcessIndex = 13,
  ClientPlatformVersion = 14,
  ClientDevices = 15,
  ClientAddressableDevices = 16,
  ClientCompile = 20,
  ClientBufferFromHostBuffer = 22,
  DeviceDescriptionId = 23,
  DeviceDescriptionProcessIndex = 24,
  DeviceDescriptionAttributes = 25,
  DeviceDescriptionKind = 26,
  DeviceDescriptionToString = 28,
  DeviceGetDescription = 29,
  DeviceIsAddressable = 30,
  DeviceLocalHardwareId = 31,
  DeviceAddressableMemories = 32,
  DeviceDefaultMemory = 33,
  DeviceMemoryStats = 34,
  MemoryId = 35,
  MemoryKind = 36,
  ExecutableDestroy = 40,
  ExecutableName = 41,
  ExecutableNumReplicas = 42,
  ExecutableNumPartitions = 43,
  ExecutableNumOutputs = 44,
  ExecutableGetCostAnalysis = 46,
  ExecutableOutputMemoryKinds = 47,
  ExecutableOptimizedProgram = 48,
  ExecutableSerialize = 49,
  LoadedExecutableDestroy = 50,
  LoadedExecutableGetExecutable = 51,
  LoadedExecutableAddressableDevices = 52,
  LoadedExecutableExecute = 55,
  ExecutableDeserializeAndLoad = 56,
  BufferDestroy = 58,
  BufferElementType = 59,
  BufferDimensions = 60,
  BufferOnDeviceSizeInBytes = 64,
  BufferDevice = 65,
  BufferMemory = 66,
  BufferDelete = 67,
  BufferIsDeleted = 68,
  BufferCopyToDevice = 69,
  BufferToHostBuffer = 70,
  BufferReadyEvent = 72,
  TopologyDescriptionCreate = 82,
  TopologyDescriptionDestroy = 83,
  TopologyDescriptionPlatformName = 84,
  TopologyDescriptionPlatformVersion = 85,
  TopologyDescriptionGetDeviceDescriptions = 86,
  Compile = 89,
  ExecutableOutputElementTypes = 90,
  ExecutableOutputDimensions = 91,
  BufferCopyToMemory = 92,
  ExecutableFingerprint = 94,
  ExecutableGetCompiledMemoryStats = 96,
};
constexpr std::size_t kNumCalls = 97;  // one more than the last place

struct CallName {
  Call call;
  std::string_view name;
};
/// In the order of the table.
std::span<const CallName> call_names();
/// "PJRT_Client_Compile"
std::string_view name_of(Call call);

}  // namespace tessera::pjrt::c
