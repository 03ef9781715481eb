/// What src/tessera/pjrt/c declares, beside the header of a wheel that has it: compiled, not run, by
/// header_test.cpp. Every call's place in the table; of every struct the size and each field's place.

#include <pjrt_c_api.h>

#include <cstddef>

#include "tessera/pjrt/c/api.h"

namespace tessera::pjrt::c {

constexpr std::size_t place(Call call) {
  return offsetof(Api, calls) + static_cast<std::size_t>(call) * sizeof(void (*)());
}

static_assert(offsetof(PJRT_Api, PJRT_Error_Destroy) == place(Call::ErrorDestroy));
static_assert(offsetof(PJRT_Api, PJRT_Error_Message) == place(Call::ErrorMessage));
static_assert(offsetof(PJRT_Api, PJRT_Error_GetCode) == place(Call::ErrorGetCode));
static_assert(offsetof(PJRT_Api, PJRT_Plugin_Initialize) == place(Call::PluginInitialize));
static_assert(offsetof(PJRT_Api, PJRT_Plugin_Attributes) == place(Call::PluginAttributes));
static_assert(offsetof(PJRT_Api, PJRT_Event_Destroy) == place(Call::EventDestroy));
static_assert(offsetof(PJRT_Api, PJRT_Event_Await) == place(Call::EventAwait));
static_assert(offsetof(PJRT_Api, PJRT_Event_OnReady) == place(Call::EventOnReady));
static_assert(offsetof(PJRT_Api, PJRT_Client_Create) == place(Call::ClientCreate));
static_assert(offsetof(PJRT_Api, PJRT_Client_Destroy) == place(Call::ClientDestroy));
static_assert(offsetof(PJRT_Api, PJRT_Client_PlatformName) == place(Call::ClientPlatformName));
static_assert(offsetof(PJRT_Api, PJRT_Client_ProcessIndex) == place(Call::ClientProcessIndex));
static_assert(offsetof(PJRT_Api, PJRT_Client_PlatformVersion) ==
              place(Call::ClientPlatformVersion));
static_assert(offsetof(PJRT_Api, PJRT_Client_Devices) == place(Call::ClientDevices));
static_assert(offsetof(PJRT_Api, PJRT_Client_AddressableDevices) ==
              place(Call::ClientAddressableDevices));
static_assert(offsetof(PJRT_Api, PJRT_Client_Compile) == place(Call::ClientCompile));
static_assert(offsetof(PJRT_Api, PJRT_Client_BufferFromHostBuffer) ==
              place(Call::ClientBufferFromHostBuffer));
static_assert(offsetof(PJRT_Api, PJRT_DeviceDescription_Id) == place(Call::DeviceDescriptionId));
static_assert(offsetof(PJRT_Api, PJRT_DeviceDescription_ProcessIndex) ==
              place(Call::DeviceDescriptionProcessIndex));
static_assert(offsetof(PJRT_Api, PJRT_DeviceDescription_Attributes) ==
              place(Call::DeviceDescriptionAttributes));
static_assert(offsetof(PJRT_Api, PJRT_DeviceDescription_Kind) ==
              place(Call::DeviceDescriptionKind));
static_assert(offsetof(PJRT_Api, PJRT_DeviceDescription_ToString) ==
              place(Call::DeviceDescriptionToString));
static_assert(offsetof(PJRT_Api, PJRT_Device_GetDescription) == place(Call::DeviceGetDescription));
static_assert(offsetof(PJRT_Api, PJRT_Device_IsAddressable) == place(Call::DeviceIsAddressable));
static_assert(offsetof(PJRT_Api, PJRT_Device_LocalHardwareId) ==
              place(Call::DeviceLocalHardwareId));
static_assert(offsetof(PJRT_Api, PJRT_Device_AddressableMemories) ==
              place(Call::DeviceAddressableMemories));
static_assert(offsetof(PJRT_Api, PJRT_Device_DefaultMemory) == place(Call::DeviceDefaultMemory));
static_assert(offsetof(PJRT_Api, PJRT_Device_MemoryStats) == place(Call::DeviceMemoryStats));
static_assert(offsetof(PJRT_Api, PJRT_Memory_Id) == place(Call::MemoryId));
static_assert(offsetof(PJRT_Api, PJRT_Memory_Kind) == place(Call::MemoryKind));
static_assert(offsetof(PJRT_Api, PJRT_Executable_Destroy) == place(Call::ExecutableDestroy));
static_assert(offsetof(PJRT_Api, PJRT_Executable_Name) == place(Call::ExecutableName));
static_assert(offsetof(PJRT_Api, PJRT_Executable_NumReplicas) ==
              place(Call::ExecutableNumReplicas));
static_assert(offsetof(PJRT_Api, PJRT_Executable_NumPartitions) ==
              place(Call::ExecutableNumPartitions));
static_assert(offsetof(PJRT_Api, PJRT_Executable_NumOutputs) == place(Call::ExecutableNumOutputs));
static_assert(offsetof(PJRT_Api, PJRT_Executable_GetCostAnalysis) ==
              place(Call::ExecutableGetCostAnalysis));
static_assert(offsetof(PJRT_Api, PJRT_Executable_OutputMemoryKinds) ==
              place(Call::ExecutableOutputMemoryKinds));
static_assert(offsetof(PJRT_Api, PJRT_Executable_OptimizedProgram) ==
              place(Call::ExecutableOptimizedProgram));
static_assert(offsetof(PJRT_Api, PJRT_Executable_Serialize) == place(Call::ExecutableSerialize));
static_assert(offsetof(PJRT_Api, PJRT_LoadedExecutable_Destroy) ==
              place(Call::LoadedExecutableDestroy));
static_assert(offsetof(PJRT_Api, PJRT_LoadedExecutable_GetExecutable) ==
              place(Call::LoadedExecutableGetExecutable));
static_assert(offsetof(PJRT_Api, PJRT_LoadedExecutable_AddressableDevices) ==
              place(Call::LoadedExecutableAddressableDevices));
static_assert(offsetof(PJRT_Api, PJRT_LoadedExecutable_Execute) ==
              place(Call::LoadedExecutableExecute));
static_assert(offsetof(PJRT_Api, PJRT_Executable_DeserializeAndLoad) ==
              place(Call::ExecutableDeserializeAndLoad));
static_assert(offsetof(PJRT_Api, PJRT_Buffer_Destroy) == place(Call::BufferDestroy));
static_assert(offsetof(PJRT_Api, PJRT_Buffer_ElementType) == place(Call::BufferElementType));
static_assert(offsetof(PJRT_Api, PJRT_Buffer_Dimensions) == place(Call::BufferDimensions));
static_assert(offsetof(PJRT_Api, PJRT_Buffer_OnDeviceSizeInBytes) ==
              place(Call::BufferOnDeviceSizeInBytes));
static_assert(offsetof(PJRT_Api, PJRT_Buffer_Device) == place(Call::BufferDevice));
static_assert(offsetof(PJRT_Api, PJRT_Buffer_Memory) == place(Call::BufferMemory));
static_assert(offsetof(PJRT_Api, PJRT_Buffer_Delete) == place(Call::BufferDelete));
static_assert(offsetof(PJRT_Api, PJRT_Buffer_IsDeleted) == place(Call::BufferIsDeleted));
static_assert(offsetof(PJRT_Api, PJRT_Buffer_CopyToDevice) == place(Call::BufferCopyToDevice));
static_assert(offsetof(PJRT_Api, PJRT_Buffer_ToHostBuffer) == place(Call::BufferToHostBuffer));
static_assert(offsetof(PJRT_Api, PJRT_Buffer_ReadyEvent) == place(Call::BufferReadyEvent));
static_assert(offsetof(PJRT_Api, PJRT_TopologyDescription_Create) ==
              place(Call::TopologyDescriptionCreate));
static_assert(offsetof(PJRT_Api, PJRT_TopologyDescription_Destroy) ==
              place(Call::TopologyDescriptionDestroy));
static_assert(offsetof(PJRT_Api, PJRT_TopologyDescription_PlatformName) ==
              place(Call::TopologyDescriptionPlatformName));
static_assert(offsetof(PJRT_Api, PJRT_TopologyDescription_PlatformVersion) ==
              place(Call::TopologyDescriptionPlatformVersion));
static_assert(offsetof(PJRT_Api, PJRT_TopologyDescription_GetDeviceDescriptions) ==
              place(Call::TopologyDescriptionGetDeviceDescriptions));
static_assert(offsetof(PJRT_Api, PJRT_Compile) == place(Call::Compile));
static_assert(offsetof(PJRT_Api, PJRT_Executable_OutputElementTypes) ==
              place(Call::ExecutableOutputElementTypes));
static_assert(offsetof(PJRT_Api, PJRT_Executable_OutputDimensions) ==
              place(Call::ExecutableOutputDimensions));
static_assert(offsetof(PJRT_Api, PJRT_Buffer_CopyToMemory) == place(Call::BufferCopyToMemory));
static_assert(offsetof(PJRT_Api, PJRT_Executable_Fingerprint) ==
              place(Call::ExecutableFingerprint));
static_assert(offsetof(PJRT_Api, PJRT_Executable_GetCompiledMemoryStats) ==
              place(Call::ExecutableGetCompiledMemoryStats));

static_assert(PJRT_Error_Destroy_Args_STRUCT_SIZE == ErrorDestroy::kSize);
static_assert(PJRT_Error_Message_Args_STRUCT_SIZE == ErrorMessage::kSize);
static_assert(PJRT_Error_GetCode_Args_STRUCT_SIZE == ErrorGetCode::kSize);
static_assert(PJRT_Plugin_Initialize_Args_STRUCT_SIZE == PluginInitialize::kSize);
static_assert(PJRT_Plugin_Attributes_Args_STRUCT_SIZE == PluginAttributes::kSize);
static_assert(PJRT_Event_Destroy_Args_STRUCT_SIZE == EventDestroy::kSize);
static_assert(PJRT_Event_Await_Args_STRUCT_SIZE == EventAwait::kSize);
static_assert(PJRT_Event_OnReady_Args_STRUCT_SIZE == EventOnReady::kSize);
static_assert(PJRT_Client_Create_Args_STRUCT_SIZE == ClientCreate::kSize);
static_assert(PJRT_Client_Destroy_Args_STRUCT_SIZE == ClientDestroy::kSize);
static_assert(PJRT_Client_PlatformName_Args_STRUCT_SIZE == ClientPlatformName::kSize);
static_assert(PJRT_Client_ProcessIndex_Args_STRUCT_SIZE == ClientProcessIndex::kSize);
static_assert(PJRT_Client_PlatformVersion_Args_STRUCT_SIZE == ClientPlatformVersion::kSize);
static_assert(PJRT_Client_Devices_Args_STRUCT_SIZE == ClientDevices::kSize);
static_assert(PJRT_Client_AddressableDevices_Args_STRUCT_SIZE == ClientAddressableDevices::kSize);
static_assert(PJRT_Client_Compile_Args_STRUCT_SIZE == ClientCompile::kSize);
static_assert(PJRT_Client_BufferFromHostBuffer_Args_STRUCT_SIZE ==
              ClientBufferFromHostBuffer::kSize);
static_assert(PJRT_DeviceDescription_Id_Args_STRUCT_SIZE == DeviceDescriptionId::kSize);
static_assert(PJRT_DeviceDescription_ProcessIndex_Args_STRUCT_SIZE ==
              DeviceDescriptionProcessIndex::kSize);
static_assert(PJRT_DeviceDescription_Attributes_Args_STRUCT_SIZE ==
              DeviceDescriptionAttributes::kSize);
static_assert(PJRT_DeviceDescription_Kind_Args_STRUCT_SIZE == DeviceDescriptionKind::kSize);
static_assert(PJRT_DeviceDescription_ToString_Args_STRUCT_SIZE == DeviceDescriptionToString::kSize);
static_assert(PJRT_Device_GetDescription_Args_STRUCT_SIZE == DeviceGetDescription::kSize);
static_assert(PJRT_Device_IsAddressable_Args_STRUCT_SIZE == DeviceIsAddressable::kSize);
static_assert(PJRT_Device_LocalHardwareId_Args_STRUCT_SIZE == DeviceLocalHardwareId::kSize);
static_assert(PJRT_Device_AddressableMemories_Args_STRUCT_SIZE == DeviceAddressableMemories::kSize);
static_assert(PJRT_Device_DefaultMemory_Args_STRUCT_SIZE == DeviceDefaultMemory::kSize);
static_assert(PJRT_Device_MemoryStats_Args_STRUCT_SIZE == DeviceMemoryStats::kSize);
static_assert(PJRT_Memory_Id_Args_STRUCT_SIZE == MemoryId::kSize);
static_assert(PJRT_Memory_Kind_Args_STRUCT_SIZE == MemoryKind::kSize);
static_assert(PJRT_Executable_Destroy_Args_STRUCT_SIZE == ExecutableDestroy::kSize);
static_assert(PJRT_Executable_Name_Args_STRUCT_SIZE == ExecutableName::kSize);
static_assert(PJRT_Executable_NumReplicas_Args_STRUCT_SIZE == ExecutableNumReplicas::kSize);
static_assert(PJRT_Executable_NumPartitions_Args_STRUCT_SIZE == ExecutableNumPartitions::kSize);
static_assert(PJRT_Executable_NumOutputs_Args_STRUCT_SIZE == ExecutableNumOutputs::kSize);
static_assert(PJRT_Executable_GetCostAnalysis_Args_STRUCT_SIZE == ExecutableGetCostAnalysis::kSize);
static_assert(PJRT_Executable_OutputMemoryKinds_Args_STRUCT_SIZE ==
              ExecutableOutputMemoryKinds::kSize);
static_assert(PJRT_Executable_OptimizedProgram_Args_STRUCT_SIZE ==
              ExecutableOptimizedProgram::kSize);
static_assert(PJRT_Executable_Serialize_Args_STRUCT_SIZE == ExecutableSerialize::kSize);
static_assert(PJRT_LoadedExecutable_Destroy_Args_STRUCT_SIZE == LoadedExecutableDestroy::kSize);
static_assert(PJRT_LoadedExecutable_GetExecutable_Args_STRUCT_SIZE ==
              LoadedExecutableGetExecutable::kSize);
static_assert(PJRT_LoadedExecutable_AddressableDevices_Args_STRUCT_SIZE ==
              LoadedExecutableAddressableDevices::kSize);
static_assert(PJRT_LoadedExecutable_Execute_Args_STRUCT_SIZE == LoadedExecutableExecute::kSize);
static_assert(PJRT_Executable_DeserializeAndLoad_Args_STRUCT_SIZE ==
              ExecutableDeserializeAndLoad::kSize);
static_assert(PJRT_Buffer_Destroy_Args_STRUCT_SIZE == BufferDestroy::kSize);
static_assert(PJRT_Buffer_ElementType_Args_STRUCT_SIZE == BufferElementType::kSize);
static_assert(PJRT_Buffer_Dimensions_Args_STRUCT_SIZE == BufferDimensions::kSize);
static_assert(PJRT_Buffer_OnDeviceSizeInBytes_Args_STRUCT_SIZE == BufferOnDeviceSizeInBytes::kSize);
static_assert(PJRT_Buffer_Device_Args_STRUCT_SIZE == BufferDevice::kSize);
static_assert(PJRT_Buffer_Memory_Args_STRUCT_SIZE == BufferMemory::kSize);
static_assert(PJRT_Buffer_Delete_Args_STRUCT_SIZE == BufferDelete::kSize);
static_assert(PJRT_Buffer_IsDeleted_Args_STRUCT_SIZE == BufferIsDeleted::kSize);
static_assert(PJRT_Buffer_CopyToDevice_Args_STRUCT_SIZE == BufferCopyToDevice::kSize);
static_assert(PJRT_Buffer_ToHostBuffer_Args_STRUCT_SIZE == BufferToHostBuffer::kSize);
static_assert(PJRT_Buffer_ReadyEvent_Args_STRUCT_SIZE == BufferReadyEvent::kSize);
static_assert(PJRT_TopologyDescription_Create_Args_STRUCT_SIZE == TopologyDescriptionCreate::kSize);
static_assert(PJRT_TopologyDescription_Destroy_Args_STRUCT_SIZE ==
              TopologyDescriptionDestroy::kSize);
static_assert(PJRT_TopologyDescription_PlatformName_Args_STRUCT_SIZE ==
              TopologyDescriptionPlatformName::kSize);
static_assert(PJRT_TopologyDescription_PlatformVersion_Args_STRUCT_SIZE ==
              TopologyDescriptionPlatformVersion::kSize);
static_assert(PJRT_TopologyDescription_GetDeviceDescriptions_Args_STRUCT_SIZE ==
              TopologyDescriptionGetDeviceDescriptions::kSize);
static_assert(PJRT_Compile_Args_STRUCT_SIZE == Compile::kSize);
static_assert(PJRT_Executable_OutputElementTypes_Args_STRUCT_SIZE ==
              ExecutableOutputElementTypes::kSize);
static_assert(PJRT_Executable_OutputDimensions_Args_STRUCT_SIZE ==
              ExecutableOutputDimensions::kSize);
static_assert(PJRT_Buffer_CopyToMemory_Args_STRUCT_SIZE == BufferCopyToMemory::kSize);
static_assert(PJRT_Executable_Fingerprint_Args_STRUCT_SIZE == ExecutableFingerprint::kSize);
static_assert(PJRT_Executable_GetCompiledMemoryStats_Args_STRUCT_SIZE ==
              ExecutableGetCompiledMemoryStats::kSize);

static_assert(offsetof(PJRT_Error_Destroy_Args, error) == offsetof(ErrorDestroy, of));
static_assert(offsetof(PJRT_Error_Message_Args, error) == offsetof(ErrorMessage, of));
static_assert(offsetof(PJRT_Error_Message_Args, message) == offsetof(ErrorMessage, answer.data));
static_assert(offsetof(PJRT_Error_Message_Args, message_size) ==
              offsetof(ErrorMessage, answer.size));
static_assert(offsetof(PJRT_Error_GetCode_Args, error) == offsetof(ErrorGetCode, of));
static_assert(offsetof(PJRT_Error_GetCode_Args, code) == offsetof(ErrorGetCode, answer));
static_assert(offsetof(PJRT_Plugin_Attributes_Args, attributes) ==
              offsetof(PluginAttributes, attributes.items));
static_assert(offsetof(PJRT_Plugin_Attributes_Args, num_attributes) ==
              offsetof(PluginAttributes, attributes.count));
static_assert(offsetof(PJRT_Event_Destroy_Args, event) == offsetof(EventDestroy, of));
static_assert(offsetof(PJRT_Event_Await_Args, event) == offsetof(EventAwait, of));
static_assert(offsetof(PJRT_Event_OnReady_Args, event) == offsetof(EventOnReady, event));
static_assert(offsetof(PJRT_Event_OnReady_Args, callback) == offsetof(EventOnReady, listener));
static_assert(offsetof(PJRT_Event_OnReady_Args, user_arg) == offsetof(EventOnReady, listener_user));
static_assert(offsetof(PJRT_Client_Create_Args, create_options) ==
              offsetof(ClientCreate, options.items));
static_assert(offsetof(PJRT_Client_Create_Args, num_options) ==
              offsetof(ClientCreate, options.count));
static_assert(offsetof(PJRT_Client_Create_Args, kv_get_callback) == offsetof(ClientCreate, get));
static_assert(offsetof(PJRT_Client_Create_Args, kv_get_user_arg) ==
              offsetof(ClientCreate, get_user));
static_assert(offsetof(PJRT_Client_Create_Args, kv_put_callback) == offsetof(ClientCreate, put));
static_assert(offsetof(PJRT_Client_Create_Args, kv_put_user_arg) ==
              offsetof(ClientCreate, put_user));
static_assert(offsetof(PJRT_Client_Create_Args, client) == offsetof(ClientCreate, client));
static_assert(offsetof(PJRT_Client_Create_Args, kv_try_get_callback) ==
              offsetof(ClientCreate, try_get));
static_assert(offsetof(PJRT_Client_Create_Args, kv_try_get_user_arg) ==
              offsetof(ClientCreate, try_get_user));
static_assert(offsetof(PJRT_Client_Destroy_Args, client) == offsetof(ClientDestroy, of));
static_assert(offsetof(PJRT_Client_PlatformName_Args, client) == offsetof(ClientPlatformName, of));
static_assert(offsetof(PJRT_Client_PlatformName_Args, platform_name) ==
              offsetof(ClientPlatformName, answer.data));
static_assert(offsetof(PJRT_Client_PlatformName_Args, platform_name_size) ==
              offsetof(ClientPlatformName, answer.size));
static_assert(offsetof(PJRT_Client_ProcessIndex_Args, client) == offsetof(ClientProcessIndex, of));
static_assert(offsetof(PJRT_Client_ProcessIndex_Args, process_index) ==
              offsetof(ClientProcessIndex, answer));
static_assert(offsetof(PJRT_Client_PlatformVersion_Args, client) ==
              offsetof(ClientPlatformVersion, of));
static_assert(offsetof(PJRT_Client_PlatformVersion_Args, platform_version) ==
              offsetof(ClientPlatformVersion, answer.data));
static_assert(offsetof(PJRT_Client_PlatformVersion_Args, platform_version_size) ==
              offsetof(ClientPlatformVersion, answer.size));
static_assert(offsetof(PJRT_Client_Devices_Args, client) == offsetof(ClientDevices, of));
static_assert(offsetof(PJRT_Client_Devices_Args, devices) == offsetof(ClientDevices, answer.items));
static_assert(offsetof(PJRT_Client_Devices_Args, num_devices) ==
              offsetof(ClientDevices, answer.count));
static_assert(offsetof(PJRT_Client_AddressableDevices_Args, client) ==
              offsetof(ClientAddressableDevices, of));
static_assert(offsetof(PJRT_Client_AddressableDevices_Args, addressable_devices) ==
              offsetof(ClientAddressableDevices, answer.items));
static_assert(offsetof(PJRT_Client_AddressableDevices_Args, num_addressable_devices) ==
              offsetof(ClientAddressableDevices, answer.count));
static_assert(offsetof(PJRT_Client_Compile_Args, client) == offsetof(ClientCompile, client));
static_assert(offsetof(PJRT_Client_Compile_Args, program) == offsetof(ClientCompile, program));
static_assert(offsetof(PJRT_Client_Compile_Args, compile_options) ==
              offsetof(ClientCompile, options.data));
static_assert(offsetof(PJRT_Client_Compile_Args, compile_options_size) ==
              offsetof(ClientCompile, options.size));
static_assert(offsetof(PJRT_Client_Compile_Args, executable) ==
              offsetof(ClientCompile, executable));
static_assert(offsetof(PJRT_Client_BufferFromHostBuffer_Args, client) ==
              offsetof(ClientBufferFromHostBuffer, client));
static_assert(offsetof(PJRT_Client_BufferFromHostBuffer_Args, data) ==
              offsetof(ClientBufferFromHostBuffer, data));
static_assert(offsetof(PJRT_Client_BufferFromHostBuffer_Args, type) ==
              offsetof(ClientBufferFromHostBuffer, type));
static_assert(offsetof(PJRT_Client_BufferFromHostBuffer_Args, dims) ==
              offsetof(ClientBufferFromHostBuffer, dims.items));
static_assert(offsetof(PJRT_Client_BufferFromHostBuffer_Args, num_dims) ==
              offsetof(ClientBufferFromHostBuffer, dims.count));
static_assert(offsetof(PJRT_Client_BufferFromHostBuffer_Args, byte_strides) ==
              offsetof(ClientBufferFromHostBuffer, byte_strides.items));
static_assert(offsetof(PJRT_Client_BufferFromHostBuffer_Args, num_byte_strides) ==
              offsetof(ClientBufferFromHostBuffer, byte_strides.count));
static_assert(offsetof(PJRT_Client_BufferFromHostBuffer_Args, host_buffer_semantics) ==
              offsetof(ClientBufferFromHostBuffer, semantics));
static_assert(offsetof(PJRT_Client_BufferFromHostBuffer_Args, device) ==
              offsetof(ClientBufferFromHostBuffer, device));
static_assert(offsetof(PJRT_Client_BufferFromHostBuffer_Args, memory) ==
              offsetof(ClientBufferFromHostBuffer, memory));
static_assert(offsetof(PJRT_Client_BufferFromHostBuffer_Args, device_layout) ==
              offsetof(ClientBufferFromHostBuffer, layout));
static_assert(offsetof(PJRT_Client_BufferFromHostBuffer_Args, done_with_host_buffer) ==
              offsetof(ClientBufferFromHostBuffer, done_with_data));
static_assert(offsetof(PJRT_Client_BufferFromHostBuffer_Args, buffer) ==
              offsetof(ClientBufferFromHostBuffer, buffer));
static_assert(offsetof(PJRT_DeviceDescription_Id_Args, device_description) ==
              offsetof(DeviceDescriptionId, of));
static_assert(offsetof(PJRT_DeviceDescription_Id_Args, id) ==
              offsetof(DeviceDescriptionId, answer));
static_assert(offsetof(PJRT_DeviceDescription_ProcessIndex_Args, device_description) ==
              offsetof(DeviceDescriptionProcessIndex, of));
static_assert(offsetof(PJRT_DeviceDescription_ProcessIndex_Args, process_index) ==
              offsetof(DeviceDescriptionProcessIndex, answer));
static_assert(offsetof(PJRT_DeviceDescription_Attributes_Args, device_description) ==
              offsetof(DeviceDescriptionAttributes, of));
static_assert(offsetof(PJRT_DeviceDescription_Attributes_Args, num_attributes) ==
              offsetof(DeviceDescriptionAttributes, answer.count));
static_assert(offsetof(PJRT_DeviceDescription_Attributes_Args, attributes) ==
              offsetof(DeviceDescriptionAttributes, answer.items));
static_assert(offsetof(PJRT_DeviceDescription_Kind_Args, device_description) ==
              offsetof(DeviceDescriptionKind, of));
static_assert(offsetof(PJRT_DeviceDescription_Kind_Args, device_kind) ==
              offsetof(DeviceDescriptionKind, answer.data));
static_assert(offsetof(PJRT_DeviceDescription_Kind_Args, device_kind_size) ==
              offsetof(DeviceDescriptionKind, answer.size));
static_assert(offsetof(PJRT_DeviceDescription_ToString_Args, device_description) ==
              offsetof(DeviceDescriptionToString, of));
static_assert(offsetof(PJRT_DeviceDescription_ToString_Args, to_string) ==
              offsetof(DeviceDescriptionToString, answer.data));
static_assert(offsetof(PJRT_DeviceDescription_ToString_Args, to_string_size) ==
              offsetof(DeviceDescriptionToString, answer.size));
static_assert(offsetof(PJRT_Device_GetDescription_Args, device) ==
              offsetof(DeviceGetDescription, of));
static_assert(offsetof(PJRT_Device_GetDescription_Args, device_description) ==
              offsetof(DeviceGetDescription, answer));
static_assert(offsetof(PJRT_Device_IsAddressable_Args, device) ==
              offsetof(DeviceIsAddressable, of));
static_assert(offsetof(PJRT_Device_IsAddressable_Args, is_addressable) ==
              offsetof(DeviceIsAddressable, answer));
static_assert(offsetof(PJRT_Device_LocalHardwareId_Args, device) ==
              offsetof(DeviceLocalHardwareId, of));
static_assert(offsetof(PJRT_Device_LocalHardwareId_Args, local_hardware_id) ==
              offsetof(DeviceLocalHardwareId, answer));
static_assert(offsetof(PJRT_Device_AddressableMemories_Args, device) ==
              offsetof(DeviceAddressableMemories, of));
static_assert(offsetof(PJRT_Device_AddressableMemories_Args, memories) ==
              offsetof(DeviceAddressableMemories, answer.items));
static_assert(offsetof(PJRT_Device_AddressableMemories_Args, num_memories) ==
              offsetof(DeviceAddressableMemories, answer.count));
static_assert(offsetof(PJRT_Device_DefaultMemory_Args, device) ==
              offsetof(DeviceDefaultMemory, of));
static_assert(offsetof(PJRT_Device_DefaultMemory_Args, memory) ==
              offsetof(DeviceDefaultMemory, answer));
static_assert(offsetof(PJRT_Device_MemoryStats_Args, device) ==
              offsetof(DeviceMemoryStats, device));
static_assert(offsetof(PJRT_Device_MemoryStats_Args, bytes_in_use) ==
              offsetof(DeviceMemoryStats, bytes_in_use));
static_assert(offsetof(PJRT_Device_MemoryStats_Args, peak_bytes_in_use) ==
              offsetof(DeviceMemoryStats, peak_bytes_in_use.bytes));
static_assert(offsetof(PJRT_Device_MemoryStats_Args, peak_bytes_in_use_is_set) ==
              offsetof(DeviceMemoryStats, peak_bytes_in_use.set));
static_assert(offsetof(PJRT_Device_MemoryStats_Args, num_allocs) ==
              offsetof(DeviceMemoryStats, num_allocations.bytes));
static_assert(offsetof(PJRT_Device_MemoryStats_Args, num_allocs_is_set) ==
              offsetof(DeviceMemoryStats, num_allocations.set));
static_assert(offsetof(PJRT_Device_MemoryStats_Args, largest_alloc_size) ==
              offsetof(DeviceMemoryStats, largest_allocation.bytes));
static_assert(offsetof(PJRT_Device_MemoryStats_Args, largest_alloc_size_is_set) ==
              offsetof(DeviceMemoryStats, largest_allocation.set));
static_assert(offsetof(PJRT_Device_MemoryStats_Args, bytes_limit) ==
              offsetof(DeviceMemoryStats, limit.bytes));
static_assert(offsetof(PJRT_Device_MemoryStats_Args, bytes_limit_is_set) ==
              offsetof(DeviceMemoryStats, limit.set));
static_assert(offsetof(PJRT_Device_MemoryStats_Args, bytes_reserved) ==
              offsetof(DeviceMemoryStats, reserved.bytes));
static_assert(offsetof(PJRT_Device_MemoryStats_Args, bytes_reserved_is_set) ==
              offsetof(DeviceMemoryStats, reserved.set));
static_assert(offsetof(PJRT_Device_MemoryStats_Args, peak_bytes_reserved) ==
              offsetof(DeviceMemoryStats, peak_reserved.bytes));
static_assert(offsetof(PJRT_Device_MemoryStats_Args, peak_bytes_reserved_is_set) ==
              offsetof(DeviceMemoryStats, peak_reserved.set));
static_assert(offsetof(PJRT_Device_MemoryStats_Args, bytes_reservable_limit) ==
              offsetof(DeviceMemoryStats, reservable_limit.bytes));
static_assert(offsetof(PJRT_Device_MemoryStats_Args, bytes_reservable_limit_is_set) ==
              offsetof(DeviceMemoryStats, reservable_limit.set));
static_assert(offsetof(PJRT_Device_MemoryStats_Args, largest_free_block_bytes) ==
              offsetof(DeviceMemoryStats, largest_free_block.bytes));
static_assert(offsetof(PJRT_Device_MemoryStats_Args, largest_free_block_bytes_is_set) ==
              offsetof(DeviceMemoryStats, largest_free_block.set));
static_assert(offsetof(PJRT_Device_MemoryStats_Args, pool_bytes) ==
              offsetof(DeviceMemoryStats, pool.bytes));
static_assert(offsetof(PJRT_Device_MemoryStats_Args, pool_bytes_is_set) ==
              offsetof(DeviceMemoryStats, pool.set));
static_assert(offsetof(PJRT_Device_MemoryStats_Args, peak_pool_bytes) ==
              offsetof(DeviceMemoryStats, peak_pool.bytes));
static_assert(offsetof(PJRT_Device_MemoryStats_Args, peak_pool_bytes_is_set) ==
              offsetof(DeviceMemoryStats, peak_pool.set));
static_assert(offsetof(PJRT_Memory_Id_Args, memory) == offsetof(MemoryId, of));
static_assert(offsetof(PJRT_Memory_Id_Args, id) == offsetof(MemoryId, answer));
static_assert(offsetof(PJRT_Memory_Kind_Args, memory) == offsetof(MemoryKind, of));
static_assert(offsetof(PJRT_Memory_Kind_Args, kind) == offsetof(MemoryKind, answer.data));
static_assert(offsetof(PJRT_Memory_Kind_Args, kind_size) == offsetof(MemoryKind, answer.size));
static_assert(offsetof(PJRT_Executable_Destroy_Args, executable) ==
              offsetof(ExecutableDestroy, of));
static_assert(offsetof(PJRT_Executable_Name_Args, executable) == offsetof(ExecutableName, of));
static_assert(offsetof(PJRT_Executable_Name_Args, executable_name) ==
              offsetof(ExecutableName, answer.data));
static_assert(offsetof(PJRT_Executable_Name_Args, executable_name_size) ==
              offsetof(ExecutableName, answer.size));
static_assert(offsetof(PJRT_Executable_NumReplicas_Args, executable) ==
              offsetof(ExecutableNumReplicas, of));
static_assert(offsetof(PJRT_Executable_NumReplicas_Args, num_replicas) ==
              offsetof(ExecutableNumReplicas, answer));
static_assert(offsetof(PJRT_Executable_NumPartitions_Args, executable) ==
              offsetof(ExecutableNumPartitions, of));
static_assert(offsetof(PJRT_Executable_NumPartitions_Args, num_partitions) ==
              offsetof(ExecutableNumPartitions, answer));
static_assert(offsetof(PJRT_Executable_NumOutputs_Args, executable) ==
              offsetof(ExecutableNumOutputs, of));
static_assert(offsetof(PJRT_Executable_NumOutputs_Args, num_outputs) ==
              offsetof(ExecutableNumOutputs, answer));
static_assert(offsetof(PJRT_Executable_GetCostAnalysis_Args, executable) ==
              offsetof(ExecutableGetCostAnalysis, of));
static_assert(offsetof(PJRT_Executable_GetCostAnalysis_Args, num_properties) ==
              offsetof(ExecutableGetCostAnalysis, answer.count));
static_assert(offsetof(PJRT_Executable_GetCostAnalysis_Args, properties) ==
              offsetof(ExecutableGetCostAnalysis, answer.items));
static_assert(offsetof(PJRT_Executable_OutputMemoryKinds_Args, executable) ==
              offsetof(ExecutableOutputMemoryKinds, of));
static_assert(offsetof(PJRT_Executable_OutputMemoryKinds_Args, num_outputs) ==
              offsetof(ExecutableOutputMemoryKinds, answer.count));
static_assert(offsetof(PJRT_Executable_OutputMemoryKinds_Args, memory_kinds) ==
              offsetof(ExecutableOutputMemoryKinds, answer.kinds));
static_assert(offsetof(PJRT_Executable_OutputMemoryKinds_Args, memory_kind_sizes) ==
              offsetof(ExecutableOutputMemoryKinds, answer.sizes));
static_assert(offsetof(PJRT_Executable_OptimizedProgram_Args, executable) ==
              offsetof(ExecutableOptimizedProgram, of));
static_assert(offsetof(PJRT_Executable_OptimizedProgram_Args, program) ==
              offsetof(ExecutableOptimizedProgram, answer));
static_assert(offsetof(PJRT_Executable_Serialize_Args, executable) ==
              offsetof(ExecutableSerialize, of));
static_assert(offsetof(PJRT_Executable_Serialize_Args, serialized_bytes) ==
              offsetof(ExecutableSerialize, answer.bytes.data));
static_assert(offsetof(PJRT_Executable_Serialize_Args, serialized_bytes_size) ==
              offsetof(ExecutableSerialize, answer.bytes.size));
static_assert(offsetof(PJRT_Executable_Serialize_Args, serialized_executable) ==
              offsetof(ExecutableSerialize, answer.owner));
static_assert(offsetof(PJRT_Executable_Serialize_Args, serialized_executable_deleter) ==
              offsetof(ExecutableSerialize, answer.delete_owner));
static_assert(offsetof(PJRT_LoadedExecutable_Destroy_Args, executable) ==
              offsetof(LoadedExecutableDestroy, of));
static_assert(offsetof(PJRT_LoadedExecutable_GetExecutable_Args, loaded_executable) ==
              offsetof(LoadedExecutableGetExecutable, of));
static_assert(offsetof(PJRT_LoadedExecutable_GetExecutable_Args, executable) ==
              offsetof(LoadedExecutableGetExecutable, answer));
static_assert(offsetof(PJRT_LoadedExecutable_AddressableDevices_Args, executable) ==
              offsetof(LoadedExecutableAddressableDevices, of));
static_assert(offsetof(PJRT_LoadedExecutable_AddressableDevices_Args, addressable_devices) ==
              offsetof(LoadedExecutableAddressableDevices, answer.items));
static_assert(offsetof(PJRT_LoadedExecutable_AddressableDevices_Args, num_addressable_devices) ==
              offsetof(LoadedExecutableAddressableDevices, answer.count));
static_assert(offsetof(PJRT_LoadedExecutable_Execute_Args, executable) ==
              offsetof(LoadedExecutableExecute, executable));
static_assert(offsetof(PJRT_LoadedExecutable_Execute_Args, options) ==
              offsetof(LoadedExecutableExecute, options));
static_assert(offsetof(PJRT_LoadedExecutable_Execute_Args, argument_lists) ==
              offsetof(LoadedExecutableExecute, arguments));
static_assert(offsetof(PJRT_LoadedExecutable_Execute_Args, num_devices) ==
              offsetof(LoadedExecutableExecute, num_devices));
static_assert(offsetof(PJRT_LoadedExecutable_Execute_Args, num_args) ==
              offsetof(LoadedExecutableExecute, num_arguments));
static_assert(offsetof(PJRT_LoadedExecutable_Execute_Args, output_lists) ==
              offsetof(LoadedExecutableExecute, outputs));
static_assert(offsetof(PJRT_LoadedExecutable_Execute_Args, device_complete_events) ==
              offsetof(LoadedExecutableExecute, done));
static_assert(offsetof(PJRT_LoadedExecutable_Execute_Args, execute_device) ==
              offsetof(LoadedExecutableExecute, device));
static_assert(offsetof(PJRT_Executable_DeserializeAndLoad_Args, client) ==
              offsetof(ExecutableDeserializeAndLoad, client));
static_assert(offsetof(PJRT_Executable_DeserializeAndLoad_Args, serialized_executable) ==
              offsetof(ExecutableDeserializeAndLoad, bytes.data));
static_assert(offsetof(PJRT_Executable_DeserializeAndLoad_Args, serialized_executable_size) ==
              offsetof(ExecutableDeserializeAndLoad, bytes.size));
static_assert(offsetof(PJRT_Executable_DeserializeAndLoad_Args, loaded_executable) ==
              offsetof(ExecutableDeserializeAndLoad, executable));
static_assert(offsetof(PJRT_Executable_DeserializeAndLoad_Args,
                       overridden_serialized_compile_options) ==
              offsetof(ExecutableDeserializeAndLoad, options.data));
static_assert(offsetof(PJRT_Executable_DeserializeAndLoad_Args,
                       overridden_serialized_compile_options_size) ==
              offsetof(ExecutableDeserializeAndLoad, options.size));
static_assert(offsetof(PJRT_Buffer_Destroy_Args, buffer) == offsetof(BufferDestroy, of));
static_assert(offsetof(PJRT_Buffer_ElementType_Args, buffer) == offsetof(BufferElementType, of));
static_assert(offsetof(PJRT_Buffer_ElementType_Args, type) == offsetof(BufferElementType, answer));
static_assert(offsetof(PJRT_Buffer_Dimensions_Args, buffer) == offsetof(BufferDimensions, of));
static_assert(offsetof(PJRT_Buffer_Dimensions_Args, dims) ==
              offsetof(BufferDimensions, answer.items));
static_assert(offsetof(PJRT_Buffer_Dimensions_Args, num_dims) ==
              offsetof(BufferDimensions, answer.count));
static_assert(offsetof(PJRT_Buffer_OnDeviceSizeInBytes_Args, buffer) ==
              offsetof(BufferOnDeviceSizeInBytes, of));
static_assert(offsetof(PJRT_Buffer_OnDeviceSizeInBytes_Args, on_device_size_in_bytes) ==
              offsetof(BufferOnDeviceSizeInBytes, answer));
static_assert(offsetof(PJRT_Buffer_Device_Args, buffer) == offsetof(BufferDevice, of));
static_assert(offsetof(PJRT_Buffer_Device_Args, device) == offsetof(BufferDevice, answer));
static_assert(offsetof(PJRT_Buffer_Memory_Args, buffer) == offsetof(BufferMemory, of));
static_assert(offsetof(PJRT_Buffer_Memory_Args, memory) == offsetof(BufferMemory, answer));
static_assert(offsetof(PJRT_Buffer_Delete_Args, buffer) == offsetof(BufferDelete, of));
static_assert(offsetof(PJRT_Buffer_IsDeleted_Args, buffer) == offsetof(BufferIsDeleted, of));
static_assert(offsetof(PJRT_Buffer_IsDeleted_Args, is_deleted) ==
              offsetof(BufferIsDeleted, answer));
static_assert(offsetof(PJRT_Buffer_CopyToDevice_Args, buffer) == offsetof(BufferCopyToDevice, of));
static_assert(offsetof(PJRT_Buffer_CopyToDevice_Args, dst_device) ==
              offsetof(BufferCopyToDevice, with));
static_assert(offsetof(PJRT_Buffer_CopyToDevice_Args, dst_buffer) ==
              offsetof(BufferCopyToDevice, answer));
static_assert(offsetof(PJRT_Buffer_ToHostBuffer_Args, src) == offsetof(BufferToHostBuffer, buffer));
static_assert(offsetof(PJRT_Buffer_ToHostBuffer_Args, host_layout) ==
              offsetof(BufferToHostBuffer, layout));
static_assert(offsetof(PJRT_Buffer_ToHostBuffer_Args, dst) == offsetof(BufferToHostBuffer, data));
static_assert(offsetof(PJRT_Buffer_ToHostBuffer_Args, dst_size) ==
              offsetof(BufferToHostBuffer, size));
static_assert(offsetof(PJRT_Buffer_ToHostBuffer_Args, event) ==
              offsetof(BufferToHostBuffer, event));
static_assert(offsetof(PJRT_Buffer_ReadyEvent_Args, buffer) == offsetof(BufferReadyEvent, of));
static_assert(offsetof(PJRT_Buffer_ReadyEvent_Args, event) == offsetof(BufferReadyEvent, answer));
static_assert(offsetof(PJRT_TopologyDescription_Create_Args, topology_name) ==
              offsetof(TopologyDescriptionCreate, name.data));
static_assert(offsetof(PJRT_TopologyDescription_Create_Args, topology_name_size) ==
              offsetof(TopologyDescriptionCreate, name.size));
static_assert(offsetof(PJRT_TopologyDescription_Create_Args, create_options) ==
              offsetof(TopologyDescriptionCreate, options.items));
static_assert(offsetof(PJRT_TopologyDescription_Create_Args, num_options) ==
              offsetof(TopologyDescriptionCreate, options.count));
static_assert(offsetof(PJRT_TopologyDescription_Create_Args, topology) ==
              offsetof(TopologyDescriptionCreate, topology));
static_assert(offsetof(PJRT_TopologyDescription_Destroy_Args, topology) ==
              offsetof(TopologyDescriptionDestroy, of));
static_assert(offsetof(PJRT_TopologyDescription_PlatformName_Args, topology) ==
              offsetof(TopologyDescriptionPlatformName, of));
static_assert(offsetof(PJRT_TopologyDescription_PlatformName_Args, platform_name) ==
              offsetof(TopologyDescriptionPlatformName, answer.data));
static_assert(offsetof(PJRT_TopologyDescription_PlatformName_Args, platform_name_size) ==
              offsetof(TopologyDescriptionPlatformName, answer.size));
static_assert(offsetof(PJRT_TopologyDescription_PlatformVersion_Args, topology) ==
              offsetof(TopologyDescriptionPlatformVersion, of));
static_assert(offsetof(PJRT_TopologyDescription_PlatformVersion_Args, platform_version) ==
              offsetof(TopologyDescriptionPlatformVersion, answer.data));
static_assert(offsetof(PJRT_TopologyDescription_PlatformVersion_Args, platform_version_size) ==
              offsetof(TopologyDescriptionPlatformVersion, answer.size));
static_assert(offsetof(PJRT_TopologyDescription_GetDeviceDescriptions_Args, topology) ==
              offsetof(TopologyDescriptionGetDeviceDescriptions, of));
static_assert(offsetof(PJRT_TopologyDescription_GetDeviceDescriptions_Args, descriptions) ==
              offsetof(TopologyDescriptionGetDeviceDescriptions, answer.items));
static_assert(offsetof(PJRT_TopologyDescription_GetDeviceDescriptions_Args, num_descriptions) ==
              offsetof(TopologyDescriptionGetDeviceDescriptions, answer.count));
static_assert(offsetof(PJRT_Compile_Args, topology) == offsetof(Compile, topology));
static_assert(offsetof(PJRT_Compile_Args, program) == offsetof(Compile, program));
static_assert(offsetof(PJRT_Compile_Args, compile_options) == offsetof(Compile, options.data));
static_assert(offsetof(PJRT_Compile_Args, compile_options_size) == offsetof(Compile, options.size));
static_assert(offsetof(PJRT_Compile_Args, client) == offsetof(Compile, client));
static_assert(offsetof(PJRT_Compile_Args, executable) == offsetof(Compile, executable));
static_assert(offsetof(PJRT_Executable_OutputElementTypes_Args, executable) ==
              offsetof(ExecutableOutputElementTypes, of));
static_assert(offsetof(PJRT_Executable_OutputElementTypes_Args, output_types) ==
              offsetof(ExecutableOutputElementTypes, answer.items));
static_assert(offsetof(PJRT_Executable_OutputElementTypes_Args, num_output_types) ==
              offsetof(ExecutableOutputElementTypes, answer.count));
static_assert(offsetof(PJRT_Executable_OutputDimensions_Args, executable) ==
              offsetof(ExecutableOutputDimensions, of));
static_assert(offsetof(PJRT_Executable_OutputDimensions_Args, num_outputs) ==
              offsetof(ExecutableOutputDimensions, answer.count));
static_assert(offsetof(PJRT_Executable_OutputDimensions_Args, dims) ==
              offsetof(ExecutableOutputDimensions, answer.dims));
static_assert(offsetof(PJRT_Executable_OutputDimensions_Args, dim_sizes) ==
              offsetof(ExecutableOutputDimensions, answer.ndims));
static_assert(offsetof(PJRT_Buffer_CopyToMemory_Args, buffer) == offsetof(BufferCopyToMemory, of));
static_assert(offsetof(PJRT_Buffer_CopyToMemory_Args, dst_memory) ==
              offsetof(BufferCopyToMemory, with));
static_assert(offsetof(PJRT_Buffer_CopyToMemory_Args, dst_buffer) ==
              offsetof(BufferCopyToMemory, answer));
static_assert(offsetof(PJRT_Executable_Fingerprint_Args, executable) ==
              offsetof(ExecutableFingerprint, of));
static_assert(offsetof(PJRT_Executable_Fingerprint_Args, executable_fingerprint) ==
              offsetof(ExecutableFingerprint, answer.data));
static_assert(offsetof(PJRT_Executable_Fingerprint_Args, executable_fingerprint_size) ==
              offsetof(ExecutableFingerprint, answer.size));
static_assert(offsetof(PJRT_Executable_GetCompiledMemoryStats_Args, executable) ==
              offsetof(ExecutableGetCompiledMemoryStats, of));
static_assert(offsetof(PJRT_Executable_GetCompiledMemoryStats_Args, generated_code_size_in_bytes) ==
              offsetof(ExecutableGetCompiledMemoryStats, answer.generated_code));
static_assert(offsetof(PJRT_Executable_GetCompiledMemoryStats_Args, argument_size_in_bytes) ==
              offsetof(ExecutableGetCompiledMemoryStats, answer.argument));
static_assert(offsetof(PJRT_Executable_GetCompiledMemoryStats_Args, output_size_in_bytes) ==
              offsetof(ExecutableGetCompiledMemoryStats, answer.output));
static_assert(offsetof(PJRT_Executable_GetCompiledMemoryStats_Args, alias_size_in_bytes) ==
              offsetof(ExecutableGetCompiledMemoryStats, answer.alias));
static_assert(offsetof(PJRT_Executable_GetCompiledMemoryStats_Args, temp_size_in_bytes) ==
              offsetof(ExecutableGetCompiledMemoryStats, answer.temp));
static_assert(offsetof(PJRT_Executable_GetCompiledMemoryStats_Args,
                       host_generated_code_size_in_bytes) ==
              offsetof(ExecutableGetCompiledMemoryStats, answer.host_generated_code));
static_assert(offsetof(PJRT_Executable_GetCompiledMemoryStats_Args, host_argument_size_in_bytes) ==
              offsetof(ExecutableGetCompiledMemoryStats, answer.host_argument));
static_assert(offsetof(PJRT_Executable_GetCompiledMemoryStats_Args, host_output_size_in_bytes) ==
              offsetof(ExecutableGetCompiledMemoryStats, answer.host_output));
static_assert(offsetof(PJRT_Executable_GetCompiledMemoryStats_Args, host_alias_size_in_bytes) ==
              offsetof(ExecutableGetCompiledMemoryStats, answer.host_alias));
static_assert(offsetof(PJRT_Executable_GetCompiledMemoryStats_Args, host_temp_size_in_bytes) ==
              offsetof(ExecutableGetCompiledMemoryStats, answer.host_temp));
static_assert(offsetof(PJRT_Executable_GetCompiledMemoryStats_Args, peak_memory_in_bytes) ==
              offsetof(ExecutableGetCompiledMemoryStats, answer.peak));

static_assert(PJRT_NamedValue_STRUCT_SIZE == NamedValue::kSize);
static_assert(offsetof(PJRT_NamedValue, struct_size) == offsetof(NamedValue, head.size));
static_assert(offsetof(PJRT_NamedValue, extension_start) == offsetof(NamedValue, head.extensions));
static_assert(offsetof(PJRT_NamedValue, name) == offsetof(NamedValue, name.data));
static_assert(offsetof(PJRT_NamedValue, name_size) == offsetof(NamedValue, name.size));
static_assert(offsetof(PJRT_NamedValue, type) == offsetof(NamedValue, kind));
static_assert(offsetof(PJRT_NamedValue, string_value) == offsetof(NamedValue, string));
static_assert(offsetof(PJRT_NamedValue, int64_value) == offsetof(NamedValue, int64));
static_assert(offsetof(PJRT_NamedValue, int64_array_value) == offsetof(NamedValue, int64s));
static_assert(offsetof(PJRT_NamedValue, float_value) == offsetof(NamedValue, float32));
static_assert(offsetof(PJRT_NamedValue, bool_value) == offsetof(NamedValue, boolean));
static_assert(offsetof(PJRT_NamedValue, value_size) == offsetof(NamedValue, count));
static_assert(PJRT_Program_STRUCT_SIZE == Program::kSize);
static_assert(offsetof(PJRT_Program, code) == offsetof(Program, code));
static_assert(offsetof(PJRT_Program, code_size) == offsetof(Program, code_size));
static_assert(offsetof(PJRT_Program, format) == offsetof(Program, format.data));
static_assert(offsetof(PJRT_Program, format_size) == offsetof(Program, format.size));
static_assert(PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE == TiledLayout::kSize);
static_assert(offsetof(PJRT_Buffer_MemoryLayout_Tiled, minor_to_major) ==
              offsetof(TiledLayout, minor_to_major.items));
static_assert(offsetof(PJRT_Buffer_MemoryLayout_Tiled, minor_to_major_size) ==
              offsetof(TiledLayout, minor_to_major.count));
static_assert(offsetof(PJRT_Buffer_MemoryLayout_Tiled, tile_dims) ==
              offsetof(TiledLayout, tile_dims));
static_assert(offsetof(PJRT_Buffer_MemoryLayout_Tiled, tile_dim_sizes) ==
              offsetof(TiledLayout, tile_dim_sizes));
static_assert(offsetof(PJRT_Buffer_MemoryLayout_Tiled, num_tiles) ==
              offsetof(TiledLayout, num_tiles));
static_assert(PJRT_Buffer_MemoryLayout_STRUCT_SIZE == MemoryLayout::kSize);
static_assert(offsetof(PJRT_Buffer_MemoryLayout, tiled) == offsetof(MemoryLayout, tiled));
static_assert(offsetof(PJRT_Buffer_MemoryLayout, type) == offsetof(MemoryLayout, type));
static_assert(PJRT_KeyValueGetCallback_Args_STRUCT_SIZE == KeyValueGet::kSize);
static_assert(offsetof(PJRT_KeyValueGetCallback_Args, key) == offsetof(KeyValueGet, key.data));
static_assert(offsetof(PJRT_KeyValueGetCallback_Args, key_size) == offsetof(KeyValueGet, key.size));
static_assert(offsetof(PJRT_KeyValueGetCallback_Args, timeout_in_ms) ==
              offsetof(KeyValueGet, timeout_milliseconds));
static_assert(offsetof(PJRT_KeyValueGetCallback_Args, callback_error) ==
              offsetof(KeyValueGet, make_error));
static_assert(offsetof(PJRT_KeyValueGetCallback_Args, user_arg) == offsetof(KeyValueGet, user));
static_assert(offsetof(PJRT_KeyValueGetCallback_Args, value) == offsetof(KeyValueGet, value));
static_assert(offsetof(PJRT_KeyValueGetCallback_Args, value_size) ==
              offsetof(KeyValueGet, value_size));
static_assert(offsetof(PJRT_KeyValueGetCallback_Args, value_deleter_callback) ==
              offsetof(KeyValueGet, delete_value));
static_assert(PJRT_KeyValueTryGetCallback_Args_STRUCT_SIZE == KeyValueTryGet::kSize);
static_assert(offsetof(PJRT_KeyValueTryGetCallback_Args, key) ==
              offsetof(KeyValueTryGet, key.data));
static_assert(offsetof(PJRT_KeyValueTryGetCallback_Args, key_size) ==
              offsetof(KeyValueTryGet, key.size));
static_assert(offsetof(PJRT_KeyValueTryGetCallback_Args, callback_error) ==
              offsetof(KeyValueTryGet, make_error));
static_assert(offsetof(PJRT_KeyValueTryGetCallback_Args, user_arg) ==
              offsetof(KeyValueTryGet, user));
static_assert(offsetof(PJRT_KeyValueTryGetCallback_Args, value) == offsetof(KeyValueTryGet, value));
static_assert(offsetof(PJRT_KeyValueTryGetCallback_Args, value_size) ==
              offsetof(KeyValueTryGet, value_size));
static_assert(offsetof(PJRT_KeyValueTryGetCallback_Args, value_deleter_callback) ==
              offsetof(KeyValueTryGet, delete_value));
static_assert(PJRT_KeyValuePutCallback_Args_STRUCT_SIZE == KeyValuePut::kSize);
static_assert(offsetof(PJRT_KeyValuePutCallback_Args, key) == offsetof(KeyValuePut, key.data));
static_assert(offsetof(PJRT_KeyValuePutCallback_Args, key_size) == offsetof(KeyValuePut, key.size));
static_assert(offsetof(PJRT_KeyValuePutCallback_Args, value) == offsetof(KeyValuePut, value.data));
static_assert(offsetof(PJRT_KeyValuePutCallback_Args, value_size) ==
              offsetof(KeyValuePut, value.size));
static_assert(offsetof(PJRT_KeyValuePutCallback_Args, callback_error) ==
              offsetof(KeyValuePut, make_error));
static_assert(offsetof(PJRT_KeyValuePutCallback_Args, user_arg) == offsetof(KeyValuePut, user));
static_assert(PJRT_ExecuteOptions_STRUCT_SIZE == ExecuteOptions::kSize);
static_assert(offsetof(PJRT_ExecuteOptions, send_callbacks) ==
              offsetof(ExecuteOptions, send_callbacks));
static_assert(offsetof(PJRT_ExecuteOptions, recv_callbacks) ==
              offsetof(ExecuteOptions, receive_callbacks));
static_assert(offsetof(PJRT_ExecuteOptions, num_send_ops) == offsetof(ExecuteOptions, num_sends));
static_assert(offsetof(PJRT_ExecuteOptions, num_recv_ops) ==
              offsetof(ExecuteOptions, num_receives));
static_assert(offsetof(PJRT_ExecuteOptions, launch_id) == offsetof(ExecuteOptions, launch_id));
static_assert(offsetof(PJRT_ExecuteOptions, non_donatable_input_indices) ==
              offsetof(ExecuteOptions, not_donated.items));
static_assert(offsetof(PJRT_ExecuteOptions, num_non_donatable_input_indices) ==
              offsetof(ExecuteOptions, not_donated.count));
static_assert(offsetof(PJRT_ExecuteOptions, context) == offsetof(ExecuteOptions, context));
static_assert(offsetof(PJRT_ExecuteOptions, call_location) ==
              offsetof(ExecuteOptions, call_location));
static_assert(offsetof(PJRT_ExecuteOptions, num_tasks) == offsetof(ExecuteOptions, num_tasks));
static_assert(offsetof(PJRT_ExecuteOptions, task_ids) == offsetof(ExecuteOptions, task_ids));
static_assert(offsetof(PJRT_ExecuteOptions, incarnation_ids) ==
              offsetof(ExecuteOptions, incarnation_ids));
static_assert(offsetof(PJRT_Api, struct_size) == offsetof(Api, head.size));
static_assert(offsetof(PJRT_Api, extension_start) == offsetof(Api, head.extensions));
static_assert(offsetof(PJRT_Api, pjrt_api_version) == offsetof(Api, version));
static_assert(offsetof(PJRT_Api_Version, major_version) == offsetof(Version, major));
static_assert(offsetof(PJRT_Api_Version, minor_version) == offsetof(Version, minor));
static_assert(sizeof(PJRT_Api_Version) == sizeof(Version));

static_assert(PJRT_Error_Code_OK == static_cast<int>(Code::Ok));
static_assert(PJRT_Error_Code_CANCELLED == static_cast<int>(Code::Cancelled));
static_assert(PJRT_Error_Code_UNKNOWN == static_cast<int>(Code::Unknown));
static_assert(PJRT_Error_Code_INVALID_ARGUMENT == static_cast<int>(Code::InvalidArgument));
static_assert(PJRT_Error_Code_DEADLINE_EXCEEDED == static_cast<int>(Code::DeadlineExceeded));
static_assert(PJRT_Error_Code_NOT_FOUND == static_cast<int>(Code::NotFound));
static_assert(PJRT_Error_Code_ALREADY_EXISTS == static_cast<int>(Code::AlreadyExists));
static_assert(PJRT_Error_Code_PERMISSION_DENIED == static_cast<int>(Code::PermissionDenied));
static_assert(PJRT_Error_Code_RESOURCE_EXHAUSTED == static_cast<int>(Code::ResourceExhausted));
static_assert(PJRT_Error_Code_FAILED_PRECONDITION == static_cast<int>(Code::FailedPrecondition));
static_assert(PJRT_Error_Code_ABORTED == static_cast<int>(Code::Aborted));
static_assert(PJRT_Error_Code_OUT_OF_RANGE == static_cast<int>(Code::OutOfRange));
static_assert(PJRT_Error_Code_UNIMPLEMENTED == static_cast<int>(Code::Unimplemented));
static_assert(PJRT_Error_Code_INTERNAL == static_cast<int>(Code::Internal));
static_assert(PJRT_Error_Code_UNAVAILABLE == static_cast<int>(Code::Unavailable));
static_assert(PJRT_Error_Code_DATA_LOSS == static_cast<int>(Code::DataLoss));
static_assert(PJRT_Error_Code_UNAUTHENTICATED == static_cast<int>(Code::Unauthenticated));
static_assert(PJRT_Buffer_Type_PRED == static_cast<int>(ElementType::Pred));
static_assert(PJRT_Buffer_Type_S32 == static_cast<int>(ElementType::S32));
static_assert(PJRT_Buffer_Type_S64 == static_cast<int>(ElementType::S64));
static_assert(PJRT_Buffer_Type_F16 == static_cast<int>(ElementType::F16));
static_assert(PJRT_Buffer_Type_F32 == static_cast<int>(ElementType::F32));
static_assert(PJRT_Buffer_Type_F64 == static_cast<int>(ElementType::F64));
static_assert(PJRT_Buffer_Type_BF16 == static_cast<int>(ElementType::Bf16));
static_assert(PJRT_NamedValue_kString == static_cast<int>(ValueKind::String));
static_assert(PJRT_NamedValue_kInt64 == static_cast<int>(ValueKind::Int64));
static_assert(PJRT_NamedValue_kInt64List == static_cast<int>(ValueKind::Int64List));
static_assert(PJRT_NamedValue_kFloat == static_cast<int>(ValueKind::Float));
static_assert(PJRT_NamedValue_kBool == static_cast<int>(ValueKind::Bool));
static_assert(PJRT_HostBufferSemantics_kImmutableOnlyDuringCall ==
              static_cast<int>(HostBuffer::OnlyDuringCall));
static_assert(PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes ==
              static_cast<int>(HostBuffer::UntilTransferred));
static_assert(PJRT_Buffer_MemoryLayout_Type_Tiled == 0);

}  // namespace tessera::pjrt::c
