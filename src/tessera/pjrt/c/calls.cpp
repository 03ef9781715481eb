#include "tessera/pjrt/c/calls.h"

#include <array>

namespace tessera::pjrt::c {

namespace {

constexpr std::array kCallNames = {
    CallName{Call::ErrorDestroy, "PJRT_Error_Destroy"},
    CallName{Call::ErrorMessage, "PJRT_Error_Message"},
    CallName{Call::ErrorGetCode, "PJRT_Error_GetCode"},
    CallName{Call::PluginInitialize, "PJRT_Plugin_Initialize"},
    CallName{Call::PluginAttributes, "PJRT_Plugin_Attributes"},
    CallName{Call::EventDestroy, "PJRT_Event_Destroy"},
    CallName{Call::EventAwait, "PJRT_Event_Await"},
    CallName{Call::EventOnReady, "PJRT_Event_OnReady"},
    CallName{Call::ClientCreate, "PJRT_Client_Create"},
    CallName{Call::ClientDestroy, "PJRT_Client_Destroy"},
    CallName{Call::ClientPlatformName, "PJRT_Client_PlatformName"},
    CallName{Call::ClientProcessIndex, "PJRT_Client_ProcessIndex"},
    CallName{Call::ClientPlatformVersion, "PJRT_Client_PlatformVersion"},
    CallName{Call::ClientDevices, "PJRT_Client_Devices"},
    CallName{Call::ClientAddressableDevices, "PJRT_Client_AddressableDevices"},
    CallName{Call::ClientCompile, "PJRT_Client_Compile"},
    CallName{Call::ClientBufferFromHostBuffer, "PJRT_Client_BufferFromHostBuffer"},
    CallName{Call::DeviceDescriptionId, "PJRT_DeviceDescription_Id"},
    CallName{Call::DeviceDescriptionProcessIndex, "PJRT_DeviceDescription_ProcessIndex"},
    CallName{Call::DeviceDescriptionAttributes, "PJRT_DeviceDescription_Attributes"},
    CallName{Call::DeviceDescriptionKind, "PJRT_DeviceDescription_Kind"},
    CallName{Call::DeviceDescriptionToString, "PJRT_DeviceDescription_ToString"},
    CallName{Call::DeviceGetDescription, "PJRT_Device_GetDescription"},
    CallName{Call::DeviceIsAddressable, "PJRT_Device_IsAddressable"},
    CallName{Call::DeviceLocalHardwareId, "PJRT_Device_LocalHardwareId"},
    CallName{Call::DeviceAddressableMemories, "PJRT_Device_AddressableMemories"},
    CallName{Call::DeviceDefaultMemory, "PJRT_Device_DefaultMemory"},
    CallName{Call::DeviceMemoryStats, "PJRT_Device_MemoryStats"},
    CallName{Call::MemoryId, "PJRT_Memory_Id"},
    CallName{Call::MemoryKind, "PJRT_Memory_Kind"},
    CallName{Call::ExecutableDestroy, "PJRT_Executable_Destroy"},
    CallName{Call::ExecutableName, "PJRT_Executable_Name"},
    CallName{Call::ExecutableNumReplicas, "PJRT_Executable_NumReplicas"},
    CallName{Call::ExecutableNumPartitions, "PJRT_Executable_NumPartitions"},
    CallName{Call::ExecutableNumOutputs, "PJRT_Executable_NumOutputs"},
    CallName{Call::ExecutableGetCostAnalysis, "PJRT_Executable_GetCostAnalysis"},
    CallName{Call::ExecutableOutputMemoryKinds, "PJRT_Executable_OutputMemoryKinds"},
    CallName{Call::ExecutableOptimizedProgram, "PJRT_Executable_OptimizedProgram"},
    CallName{Call::ExecutableSerialize, "PJRT_Executable_Serialize"},
    CallName{Call::LoadedExecutableDestroy, "PJRT_LoadedExecutable_Destroy"},
    CallName{Call::LoadedExecutableGetExecutable, "PJRT_LoadedExecutable_GetExecutable"},
    CallName{Call::LoadedExecutableAddressableDevices, "PJRT_LoadedExecutable_AddressableDevices"},
    CallName{Call::LoadedExecutableExecute, "PJRT_LoadedExecutable_Execute"},
    CallName{Call::ExecutableDeserializeAndLoad, "PJRT_Executable_DeserializeAndLoad"},
    CallName{Call::BufferDestroy, "PJRT_Buffer_Destroy"},
    CallName{Call::BufferElementType, "PJRT_Buffer_ElementType"},
    CallName{Call::BufferDimensions, "PJRT_Buffer_Dimensions"},
    CallName{Call::BufferOnDeviceSizeInBytes, "PJRT_Buffer_OnDeviceSizeInBytes"},
    CallName{Call::BufferDevice, "PJRT_Buffer_Device"},
    CallName{Call::BufferMemory, "PJRT_Buffer_Memory"},
    CallName{Call::BufferDelete, "PJRT_Buffer_Delete"},
    CallName{Call::BufferIsDeleted, "PJRT_Buffer_IsDeleted"},
    CallName{Call::BufferCopyToDevice, "PJRT_Buffer_CopyToDevice"},
    CallName{Call::BufferToHostBuffer, "PJRT_Buffer_ToHostBuffer"},
    CallName{Call::BufferReadyEvent, "PJRT_Buffer_ReadyEvent"},
    CallName{Call::TopologyDescriptionCreate, "PJRT_TopologyDescription_Create"},
    CallName{Call::TopologyDescriptionDestroy, "PJRT_TopologyDescription_Destroy"},
    CallName{Call::TopologyDescriptionPlatformName, "PJRT_TopologyDescription_PlatformName"},
    CallName{Call::TopologyDescriptionPlatformVersion, "PJRT_TopologyDescription_PlatformVersion"},
    CallName{Call::TopologyDescriptionGetDeviceDescriptions,
             "PJRT_TopologyDescription_GetDeviceDescriptions"},
    CallName{Call::Compile, "PJRT_Compile"},
    CallName{Call::ExecutableOutputElementTypes, "PJRT_Executable_OutputElementTypes"},
    CallName{Call::ExecutableOutputDimensions, "PJRT_Executable_OutputDimensions"},
    CallName{Call::BufferCopyToMemory, "PJRT_Buffer_CopyToMemory"},
    CallName{Call::ExecutableFingerprint, "PJRT_Executable_Fingerprint"},
    CallName{Call::ExecutableGetCompiledMemoryStats, "PJRT_Executable_GetCompiledMemoryStats"},
};

}  // namespace

std::span<const CallName> call_names() { return kCallNames; }

std::string_view name_of(Call call) {
  for (const CallName& row : kCallNames) {
    if (row.call == call) return row.name;
  }
  return "an unknown call";
}

}  // namespace tessera::pjrt::c
