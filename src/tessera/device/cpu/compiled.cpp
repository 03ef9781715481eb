#include "tessera/device/compiled.h"

#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/gemm/vector_targets.h"

// After the targets.
#include "hwy/detect_targets.h"

namespace tessera {

namespace {

std::string names_of_levels(bool compiled) {
  std::vector<std::string_view> out;
  for (std::size_t i = 0; i < kIsaNames.size(); ++i) {
    if (is_compiled(static_cast<Isa>(i)) == compiled) out.push_back(kIsaNames[i]);
  }
  return join(out);
}

}  // namespace

/// Vector files are compiled for Highway's targets. Products of bf16 are always compiled, and need
/// the vectors of avx512 beside them.
bool is_compiled(Isa isa) {
  if (isa == Isa::Baseline) return true;
#if !defined(__x86_64__)
  return true;  // no processor of another kind has them, so none is left out
#endif
  return (HWY_TARGETS & (isa == Isa::Avx2 ? HWY_AVX2 : HWY_AVX3)) != 0;
}

std::string levels_left_out() { return names_of_levels(false); }

void require_compiled(Isa isa, std::string_view source) {
  require(is_compiled(isa), source, " ", to_text(isa),
          ": this program was compiled without it, only for ", names_of_levels(true),
          "; give one of these, or run ./dev build, which compiles all instruction sets");
}

}  // namespace tessera
