/// Buffers: bytes of this process.

#include <cstring>

#include "pjrt/plugin/objects.h"

namespace tessera::pjrt::c {

namespace {

std::size_t element_size(ElementType type) {
  switch (type) {
    case ElementType::Pred: return 1;
    case ElementType::F16:
    case ElementType::Bf16: return 2;
    case ElementType::S32:
    case ElementType::F32: return 4;
    case ElementType::S64:
    case ElementType::F64: return 8;
  }
  return 0;
}

}  // namespace

std::size_t bytes_of(ElementType type, const std::vector<std::int64_t>& dims) {
  std::size_t out = element_size(type);
  for (const std::int64_t dim : dims) out *= static_cast<std::size_t>(dim);
  return out;
}

namespace {

Error* gone() { return error(Code::InvalidArgument, "a deleted buffer"); }

Error* from_host(ClientBufferFromHostBuffer* of) {
  auto buffer = std::make_unique<Buffer>();
  buffer->type = of->type;
  buffer->dims.assign(of->dims.items, of->dims.items + of->dims.count);
  buffer->device = of->device;
  const std::size_t bytes = bytes_of(of->type, buffer->dims);
  buffer->take(std::vector<char>(bytes));
  if (bytes > 0) std::memcpy(buffer->bytes.data(), of->data, bytes);
  buffer->memory = of->memory == nullptr ? of->device->memory_list[0] : of->memory;
  of->buffer = buffer.release();
  of->done_with_data = new Event;
  return nullptr;
}
Error* to_host(BufferToHostBuffer* of) {
  if (of->buffer->deleted) return gone();
  if (of->size < of->buffer->bytes.size()) return error(Code::InvalidArgument, "too few bytes");
  if (of->size > 0) std::memcpy(of->data, of->buffer->bytes.data(), of->buffer->bytes.size());
  of->event = new Event;
  return nullptr;
}
Error* destroy_buffer(BufferDestroy* of) {
  delete of->of;
  return nullptr;
}
Error* remove_buffer(BufferDelete* of) {
  of->of->deleted = true;
  of->of->give();
  return nullptr;
}
Error* is_deleted(BufferIsDeleted* of) {
  of->answer = of->of->deleted;
  return nullptr;
}
Error* element_type(BufferElementType* of) {
  of->answer = of->of->type;
  return nullptr;
}
Error* dimensions(BufferDimensions* of) {
  of->answer = {of->of->dims.data(), of->of->dims.size()};
  return nullptr;
}
Error* device_size(BufferOnDeviceSizeInBytes* of) {
  of->answer = of->of->bytes.size();
  return nullptr;
}
Error* device_of(BufferDevice* of) {
  of->answer = of->of->device;
  return nullptr;
}
Error* memory_of(BufferMemory* of) {
  of->answer = of->of->memory;
  return nullptr;
}
Error* ready_event(BufferReadyEvent* of) {
  of->answer = new Event;
  return nullptr;
}

Buffer* copy_of(const Buffer& from, Device* device, Memory* memory) {
  auto* const out = new Buffer;
  out->type = from.type;
  out->dims = from.dims;
  out->device = device;
  out->take(from.bytes);
  out->memory = memory;
  return out;
}
Error* copy_to_device(BufferCopyToDevice* of) {
  if (of->of->deleted) return gone();
  of->answer = copy_of(*of->of, of->with, of->with->memory_list[0]);
  return nullptr;
}
Error* copy_to_memory(BufferCopyToMemory* of) {
  if (of->of->deleted) return gone();
  of->answer = copy_of(*of->of, of->of->device, of->with);
  return nullptr;
}

}  // namespace

void add_buffer_calls(Api& api) {
  add<from_host>(api);
  add<to_host>(api);
  add<destroy_buffer>(api);
  add<remove_buffer>(api);
  add<is_deleted>(api);
  add<element_type>(api);
  add<dimensions>(api);
  add<device_size>(api);
  add<device_of>(api);
  add<memory_of>(api);
  add<ready_event>(api);
  add<copy_to_device>(api);
  add<copy_to_memory>(api);
}

}  // namespace tessera::pjrt::c
