#include "tessera/pjrt/c/element_type.h"

#include <algorithm>

#include "tessera/pjrt/c/call.h"

namespace tessera::pjrt::c {

ElementType element_type(DType dtype) {
  switch (dtype) {
    case DType::F32: return ElementType::F32;
    case DType::F64: return ElementType::F64;
    case DType::BF16: return ElementType::Bf16;
    case DType::F16: return ElementType::F16;
    case DType::I32: return ElementType::S32;
    case DType::I64: return ElementType::S64;
    case DType::Bool: return ElementType::Pred;
  }
  check(false, "a dtype without an element type of PJRT: ", static_cast<int>(dtype));
  return ElementType::F32;
}

DType dtype_of(const Plugin& plugin, ElementType type) {
  for (const DType dtype :
       {DType::F32, DType::F64, DType::BF16, DType::F16, DType::I32, DType::I64, DType::Bool}) {
    if (element_type(dtype) == type) return dtype;
  }
  fail(Fault::Usage, plugin.file(), ": a tensor has PJRT's element type ", static_cast<int>(type),
       ", which Tessera has not; convert it in the module");
}

Shape shape_of(const Plugin& plugin, Call call, std::span<const std::int64_t> dims) {
  constexpr std::int64_t kMost = std::int64_t{1} << 50;  // elements
  if (dims.size() > static_cast<std::size_t>(Shape::kMaxDims))
    fail_answer(plugin, call, text(dims.size(), " dims"));
  std::int64_t numel = 1;
  for (const std::int64_t dim : dims) {
    if (dim < 0 || dim > kMost / std::max(numel, std::int64_t{1}))
      fail_answer(plugin, call, text("a tensor of [", join(dims), "]"));
    numel *= dim;
  }
  return Shape(dims);
}

}  // namespace tessera::pjrt::c
