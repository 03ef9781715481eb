#pragma once
/// Tensors in a device's memory.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "tessera/pjrt/client.h"
#include "tessera/pjrt/event.h"
#include "tessera/tensor/type.h"

namespace tessera::pjrt {

/// A tensor on one device. It may not be computed yet: what reads it waits. Its memory is released
/// with it.
///
/// An execution can take over the memory of an argument (a donation: tf.aliasing_output in the
/// module). The argument is gone then; every use of it is an Error of Fault::Internal that says so.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(Handle<c::Buffer> buffer) : buffer_(std::move(buffer)) {}

  explicit operator bool() const { return static_cast<bool>(buffer_); }
  /// Errors: an element type or a number of dims that Tessera has not.
  TensorType type() const;
  /// Bytes in the memory of the device, padding included.
  std::int64_t device_bytes() const;
  /// Of the device it is on (Device::id).
  int device() const;
  /// "device", "pinned_host", ...
  std::string memory_kind() const;
  /// Donated, or released by remove().
  bool deleted() const;
  /// Releases the memory as soon as nothing that runs needs it.
  void remove();

  /// When it is computed. Errors come from waiting.
  Event ready() const;
  /// Copies all of it, row-major; waits until that is done. `into` has type().bytes() bytes.
  void read(std::span<std::byte> into) const;
  /// The same without waiting: `into` is to live until the event.
  Event start_read(std::span<std::byte> into) const;

  /// A copy on another device of the client, or in memory of another kind.
  Buffer copy_to(const Device& device, std::string_view memory_kind = {}) const;

  /// For this room alone. Errors: no buffer, or a deleted one; `what` begins the sentence.
  c::Buffer* usable(std::string_view what) const;

 private:
  Handle<c::Buffer> buffer_;
};

/// A copy of `data`, row-major, on a local device: in its default memory, or in that of a kind.
/// `data` may change after the call. Errors: bytes that are not those of the type; no such memory;
/// out of memory (Fault::Resource).
Buffer to_device(const Client& client, std::span<const std::byte> data, DType dtype,
                 const Shape& shape, const Device& device, std::string_view memory_kind = {});

struct Upload {
  Buffer buffer;
  Event done;  // `data` is no longer read
};
/// The same without waiting: `data` is to live, unchanged, until it is done.
Upload start_to_device(const Client& client, std::span<const std::byte> data, DType dtype,
                       const Shape& shape, const Device& device, std::string_view memory_kind = {});

}  // namespace tessera::pjrt
