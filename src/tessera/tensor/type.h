#pragma once
/// The type of a tensor: dtype, shape and layout.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/small_vector.h"
#include "tessera/tensor/dtype.h"
#include "tessera/tensor/shape.h"

namespace tessera {

/// How elements are stored: plain row-major, or an opaque form that only the device which made
/// it can read.
struct Layout {
  std::string tag;         // empty: plain
  std::int64_t bytes = 0;  // size of the opaque form

  bool plain() const { return tag.empty(); }
  friend bool operator==(const Layout&, const Layout&) = default;
};

struct TensorType {
  DType dtype = DType::F32;
  Shape shape;
  Layout layout;

  std::int64_t numel() const { return shape.numel(); }
  int ndim() const { return shape.ndim(); }
  /// Bytes of storage, without alignment.
  std::int64_t bytes() const { return layout.plain() ? numel() * size_of(dtype) : layout.bytes; }
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

using TensorTypes = SmallVector<TensorType, 1>;

/// "f32[4,256]", "f32[768,768]@packed:2359296"
std::string to_text(const TensorType& type);
/// Reads what to_text writes.
TensorType parse_type(std::string_view line);

}  // namespace tessera
