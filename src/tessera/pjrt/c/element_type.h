#pragma once
/// Tessera's element types as the interface's.

#include <span>

#include "tessera/pjrt/c/calls.h"
#include "tessera/pjrt/c/types.h"
#include "tessera/pjrt/plugin.h"
#include "tessera/tensor/type.h"

namespace tessera::pjrt::c {

ElementType element_type(DType dtype);
/// Errors: Fault::Usage: a type that Tessera has not.
DType dtype_of(const Plugin& plugin, ElementType type);
/// Errors: sizes below 0, more dims than a Shape has; `call` gave them.
Shape shape_of(const Plugin& plugin, Call call, std::span<const std::int64_t> dims);

}  // namespace tessera::pjrt::c
