#include "tessera/apps/amx_speedup.h"
#include "tessera/base/cores.h"
#include "tessera/base/proc.h"
#include "tessera/base/text.h"
#include "tessera/launch/agreement.h"
#include "tessera/launch/environment.h"
#include "tessera/runtime/f32_products.h"

namespace tessera {

// Alone in its file, which is compiled alone (CMakeLists.txt): tests link another one in its place.
AmxSpeedup amx_speedup() {
  const int threads = num_usable_cores();
  const std::string key = text(processor_name(), ", ", threads, " threads\n", program_text(),
                               ", oneDNN ", product_library());
  return kept_amx_speedup(user_cache_folder(process_environment()), key,
                          [&] { return measure_amx_speedup(threads); });
}

}  // namespace tessera
