#pragma once
/// A module's text as a compiler takes it.

#include <string_view>

#include "tessera/pjrt/c/types.h"

namespace tessera::pjrt::c {

/// A view of `text`. The interface's field is not const, as compilers also write there; of a program
/// that they compile they only read.
inline Program mlir_program(std::string_view text) {
  constexpr std::string_view kFormat = "mlir";
  Program out;
  out.head.size = Program::kSize;
  out.code = const_cast<char*>(text.data());
  out.code_size = text.size();
  out.format = {kFormat.data(), kFormat.size()};
  return out;
}

}  // namespace tessera::pjrt::c
