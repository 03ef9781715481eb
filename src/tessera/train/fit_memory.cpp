#include "tessera/train/fit_memory.h"

#include <cmath>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/config/memory_cap.h"
#include "tessera/train/host_pool.h"
#include "tessera/train/memory_choice.h"
#include "tessera/train/memory_search.h"
#include "tessera/train/within_cap.h"

namespace tessera {

namespace {

/// "3 % longer", "12 times as long", "9 % shorter"
std::string longer_text(double times) {
  if (times < 1) return text(std::llround(100 * (1 - times)), " % shorter");
  return times < 2 ? text(std::llround(100 * (times - 1)), " % longer")
                   : text(std::llround(times), " times as long");
}

/// "; what you asked for stands in the way: --micro-batch-size 8; without that it takes ..."
std::string given_against(const RunConfig& config, std::int64_t least, Device& device) {
  const std::vector<std::string> asked = asked_against(config);
  if (asked.empty()) return "";
  RunConfig free = config;
  free.given.clear();
  free.parallel.recompute_layers = "all";
  MemorySearch search(free, device, 1);
  search.descend();
  const MemoryCandidate leanest = search.leanest_known();
  const std::int64_t bytes = search.at(leanest).capped_bytes;
  if (bytes >= least) return "";
  return text("; your flags prevent less: ", join(asked), "; without them the plan takes ",
              bytes_text(bytes), " (", bytes, " bytes), with ", flags_text(search.choice(leanest)));
}

/// On a CPU offloading into main memory saves nothing, but a file does.
std::string file_hint(const RunConfig& config) {
  return host_pool_of(config) == HostPool::SameMemory
             ? "; --remote-device nvme --offload-folder FOLDER keeps states in a file"
             : "";
}

[[noreturn]] void refuse(const RunConfig& config, std::int64_t cap, MemorySearch& search,
                         Device& device) {
  const std::string what = text("memory-cap ", config.memory_cap, " (", cap, " bytes) is below ");
  const std::int64_t batch = search.as_asked().batch_bytes;
  if (batch > cap)
    fail(Fault::Usage, what, bytes_text(batch), " (", batch,
         " bytes), which the samples of a step take on a device under any plan; raise the cap, or "
         "lower --global-batch-size");
  const MemoryCandidate leanest = search.leanest_known();
  const std::int64_t least = search.at(leanest).capped_bytes;
  fail(Fault::Usage, what, bytes_text(least), " (", least,
       " bytes), the least of all plans tried, which uses ", flags_text(search.choice(leanest)),
       given_against(config, least, device), file_hint(config),
       "; raise the cap, or shard the model: more --devices with --zero-stage 3, "
       "--tensor-model-parallel-size or --pipeline-model-parallel-size");
}

}  // namespace

std::string fit_memory(RunConfig& config, Device& device,
                       const std::function<void(const std::string&)>& notice) {
  const std::optional<std::int64_t> cap = parse_memory_cap(config.memory_cap);
  if (!cap) return "";
  MemorySearch search(config, device, *cap);
  if (search.fits_as_asked()) return "";
  const MemoryPrice asked = search.as_asked();
  if (notice)
    notice(text("memory-cap ", config.memory_cap, ": ", bytes_text(asked.capped_bytes),
                " planned without it; searching at most ", search.most_candidates(),
                " plans for one that fits"));
  const std::optional<MemoryCandidate> found = search.cheapest();
  if (!found) refuse(config, *cap, search, device);
  const MemoryChoice choice = search.choice(*found);
  const MemoryPrice price = search.at(*found);
  set_memory_choice(config, choice);
  complete(config);
  return text("memory-cap ", config.memory_cap, ": ", bytes_text(price.capped_bytes),
              " planned with ", flags_text(choice), "; a step is priced ",
              longer_text(price.seconds / asked.seconds));
}

}  // namespace tessera
