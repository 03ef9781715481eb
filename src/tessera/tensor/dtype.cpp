#include "tessera/tensor/dtype.h"

#include <array>
#include <utility>

#include "tessera/base/error.h"

namespace tessera {

namespace {
constexpr std::array<std::pair<DType, std::string_view>, 7> kNames = {{{DType::F32, "f32"},
                                                                       {DType::F64, "f64"},
                                                                       {DType::BF16, "bf16"},
                                                                       {DType::F16, "f16"},
                                                                       {DType::I32, "i32"},
                                                                       {DType::I64, "i64"},
                                                                       {DType::Bool, "bool"}}};
}  // namespace

std::string_view to_text(DType dtype) { return kNames[static_cast<std::size_t>(dtype)].second; }

DType parse_dtype(std::string_view name) {
  for (const auto& [dtype, known] : kNames) {
    if (known == name) return dtype;
  }
  fail(Fault::Usage, "unknown dtype '", name, "'; known are f32, f64, bf16, f16, i32, i64, bool");
}

}  // namespace tessera
