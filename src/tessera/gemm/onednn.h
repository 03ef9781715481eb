#pragma once
/// The adapter of oneDNN: f32 matrix products of fixed shapes. Its .cpp is the only file that knows
/// the library.

#include <cstdint>
#include <memory>
#include <string_view>

#include "tessera/gemm/gemm_shape.h"

namespace tessera::cpu {

/// "2.6.3 (52b5f107)": that of the shared library that is loaded.
std::string onednn_version();

/// Levels of x86 processors that oneDNN tells apart, as far as it matters here.
enum class OnednnLevel : std::uint8_t { Sse41, Avx2, Avx512, Any };

/// The most that products of this process use from now on; before the first one is made. False: the
/// library has fixed its level already.
bool cap_onednn(OnednnLevel level);

enum class Weights { Plain, Packed };  // Packed: B lies in a form of oneDNN's own, written by pack

/// A product made ready once. Calls may come from several threads at once, each with its own
/// scratch; each call uses the one thread that it comes from, whatever OpenMP's settings are.
class Gemm {
 public:
  using In = float;
  using Out = float;
  static constexpr std::string_view kMatmulName = "onednn:matmul";
  static constexpr std::string_view kGroupedName = "onednn:grouped";

  explicit Gemm(const GemmShape& shape, Weights weights = Weights::Plain);
  Gemm(Gemm&&) noexcept;
  Gemm& operator=(Gemm&&) noexcept;
  ~Gemm();

  std::int64_t scratch_bytes() const;  // of execute and pack; 64-byte aligned
  std::int64_t packed_bytes() const;   // of B as execute reads it
  /// The library's name of the chosen loops: "brg:avx512_core", "ref:any".
  std::string_view implementation() const;

  /// Writes the packed form of a B that lies as the shape says.
  void pack(const float* b, void* packed, void* scratch) const;
  void execute(const float* a, const void* b, float* c, void* scratch) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::cpu
