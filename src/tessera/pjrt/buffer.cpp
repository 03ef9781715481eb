#include "tessera/pjrt/buffer.h"

#include <algorithm>

#include "tessera/pjrt/c/call.h"
#include "tessera/pjrt/c/element_type.h"

namespace tessera::pjrt {

namespace {

/// Dims from the last to the first: row-major, whatever the device uses.
std::vector<std::int64_t> row_major(int ndim) {
  std::vector<std::int64_t> out;
  for (int dim = ndim - 1; dim >= 0; --dim) out.push_back(dim);
  return out;
}

c::MemoryLayout layout_of(const std::vector<std::int64_t>& minor_to_major) {
  c::MemoryLayout out;
  out.head.size = c::MemoryLayout::kSize;
  out.tiled.head.size = c::TiledLayout::kSize;
  out.tiled.minor_to_major = {minor_to_major.data(), minor_to_major.size()};
  return out;
}

}  // namespace

c::Buffer* Buffer::usable(std::string_view what) const {
  check(static_cast<bool>(buffer_), what, ": no buffer; it was moved from, or never made");
  check(!deleted(), what, ": the buffer was donated to an execution, or removed; use its result");
  return buffer_.get();
}

TensorType Buffer::type() const {
  const Plugin& plugin = buffer_.plugin();
  c::Buffer* const buffer = usable("type of a buffer");
  const DType dtype = c::dtype_of(plugin, c::get<c::BufferElementType>(plugin, buffer));
  const auto dims = c::get<c::BufferDimensions>(plugin, buffer);
  const auto checked = c::checked(plugin, c::Call::BufferDimensions, dims);
  return {dtype, c::shape_of(plugin, c::Call::BufferDimensions, checked), {}};
}

std::int64_t Buffer::device_bytes() const {
  c::Buffer* const buffer = usable("size of a buffer");
  return static_cast<std::int64_t>(c::get<c::BufferOnDeviceSizeInBytes>(buffer_.plugin(), buffer));
}

int Buffer::device() const {
  const Plugin& plugin = buffer_.plugin();
  c::Device* const device = c::get<c::BufferDevice>(plugin, usable("device of a buffer"));
  return c::get<c::DeviceDescriptionId>(plugin, c::get<c::DeviceGetDescription>(plugin, device));
}

std::string Buffer::memory_kind() const {
  const Plugin& plugin = buffer_.plugin();
  c::Memory* const memory = c::get<c::BufferMemory>(plugin, usable("memory of a buffer"));
  return c::get_text<c::MemoryKind>(plugin, memory);
}

bool Buffer::deleted() const {
  return !buffer_ || c::get<c::BufferIsDeleted>(buffer_.plugin(), buffer_.get()) != 0;
}

void Buffer::remove() {
  if (deleted()) return;
  auto remove = c::arguments<c::BufferDelete>();
  remove.of = buffer_.get();
  c::call(buffer_.plugin(), remove);
}

Event Buffer::ready() const {
  const Plugin& plugin = buffer_.plugin();
  c::Event* const event = c::get<c::BufferReadyEvent>(plugin, usable("waiting for a buffer"));
  return Event(Handle<c::Event>(plugin, event, buffer_.needs()), "a buffer");
}

void Buffer::read(std::span<std::byte> into) const { start_read(into).wait(); }

Event Buffer::start_read(std::span<std::byte> into) const {
  const TensorType type = this->type();
  check(static_cast<std::int64_t>(into.size()) == type.bytes(), "reading a buffer of ", type, ", ",
        type.bytes(), " bytes, into ", into.size(), "; give as many");
  const std::vector<std::int64_t> order = row_major(type.ndim());
  c::MemoryLayout layout = layout_of(order);
  auto read = c::arguments<c::BufferToHostBuffer>();
  read.buffer = usable("reading a buffer");
  read.layout = &layout;
  read.data = into.data();
  read.size = into.size();
  c::call(buffer_.plugin(), read);
  return Event(Handle<c::Event>(buffer_.plugin(), read.event, buffer_.needs()),
               "a copy to the host");
}

Buffer Buffer::copy_to(const Device& device, std::string_view memory_kind) const {
  const Plugin& plugin = buffer_.plugin();
  c::Buffer* const from = usable("copying a buffer");
  c::Buffer* made = nullptr;
  if (memory_kind.empty()) {
    auto copy = c::arguments<c::BufferCopyToDevice>();
    copy.of = from;
    copy.with = device.object;
    c::call(plugin, copy);
    made = copy.answer;
  } else {
    auto copy = c::arguments<c::BufferCopyToMemory>();
    copy.of = from;
    copy.with = memory_of(device, memory_kind).object;
    c::call(plugin, copy);
    made = copy.answer;
  }
  return Buffer(Handle<c::Buffer>(plugin, made, buffer_.needs()));
}

Buffer to_device(const Client& client, std::span<const std::byte> data, DType dtype,
                 const Shape& shape, const Device& device, std::string_view memory_kind) {
  Upload upload = start_to_device(client, data, dtype, shape, device, memory_kind);
  upload.done.wait();
  return std::move(upload.buffer);
}

Upload start_to_device(const Client& client, std::span<const std::byte> data, DType dtype,
                       const Shape& shape, const Device& device, std::string_view memory_kind) {
  const TensorType type = {dtype, shape, {}};
  check(static_cast<std::int64_t>(data.size()) == type.bytes(), "a buffer of ", type, " has ",
        type.bytes(), " bytes, and ", data.size(), " are given; give as many");
  auto make = c::arguments<c::ClientBufferFromHostBuffer>();
  make.client = client.object();
  make.data = data.data();
  make.type = c::element_type(dtype);
  make.dims = {shape.begin(), static_cast<std::size_t>(shape.ndim())};
  make.semantics = c::HostBuffer::UntilTransferred;
  make.device = device.object;
  if (!memory_kind.empty()) make.memory = memory_of(device, memory_kind).object;
  try {
    c::call(client.plugin(), make);
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(error.with(text("while copying ", type, " to device ", device.id)));
  } catch (const Error& error) {
    throw error.with(text("while copying ", type, " to device ", device.id));
  }
  Handle<c::Event> done(client.plugin(), make.done_with_data, client.life());
  return {Buffer(Handle<c::Buffer>(client.plugin(), make.buffer, client.life())),
          Event(std::move(done), "a copy to the device")};
}

}  // namespace tessera::pjrt
