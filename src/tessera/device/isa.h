#pragma once
/// Instruction sets of x86 processors, as levels that kernels are made for.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/tensor/dtype.h"

namespace tessera {

/// Each level includes those before it.
enum class Isa : std::uint8_t {
  Baseline,    // every x86-64 processor, and every other one
  Avx2,        // with FMA
  Avx512,      // F, BW, DQ and VL
  Avx512Bf16,  // and products of 16-bit floats
  Amx,         // and tiles of 16-bit floats
};
inline constexpr std::array<std::string_view, 5> kIsaNames = {"baseline", "avx2", "avx512",
                                                              "avx512-bf16", "amx"};

/// True where there are kernels that multiply matrices of this 16-bit float; elsewhere products are
/// made in f32, between conversions.
constexpr bool multiplies_16_bit(DType dtype, Isa isa) {
  return dtype == DType::BF16 && isa >= Isa::Avx512Bf16;
}

constexpr std::string_view to_text(Isa isa) { return kIsaNames[static_cast<std::size_t>(isa)]; }

/// How matrices of f32 are multiplied: by multiply-adds on vectors, or on tiles (Isa::Amx). Which
/// is faster depends on the machine.
enum class F32Products : std::uint8_t { Fma, Amx };
inline constexpr std::array<std::string_view, 2> kF32ProductNames = {"fma", "amx"};

constexpr std::string_view to_text(F32Products products) {
  return kF32ProductNames[static_cast<std::size_t>(products)];
}

/// In a sentence: products "by AMX".
constexpr std::string_view long_name(F32Products products) {
  return products == F32Products::Amx ? "AMX" : "multiply-adds";
}

/// What a processor decides of a device's kernels. Devices of equal choices and equally many
/// threads compute the same bits, on whichever processors.
struct CpuChoices {
  Isa isa = Isa::Baseline;    // the highest that kernels use, oneDNN's and Highway's included
  bool pack_weights = false;  // weights are packed for products where that is expected to pay
  F32Products f32_products = F32Products::Fma;  // Amx: at Isa::Amx alone

  /// The same without what is above `most`.
  CpuChoices at_most(Isa most) const {
    const Isa least = std::min(isa, most);
    return {least, pack_weights, least < Isa::Amx ? F32Products::Fma : f32_products};
  }
  friend bool operator==(const CpuChoices&, const CpuChoices&) = default;
};

/// Errors: Fault::Usage: no level; `source` names what said so.
inline Isa parse_isa(std::string_view name, std::string_view source) {
  for (std::size_t i = 0; i < kIsaNames.size(); ++i) {
    if (kIsaNames[i] == name) return static_cast<Isa>(i);
  }
  fail(Fault::Usage, source, " '", name, "' is no instruction set; it can be ",
       "avx2, avx512, avx512-bf16 or amx");
}

}  // namespace tessera
