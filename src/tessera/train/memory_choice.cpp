#include "tessera/train/memory_choice.h"

#include <algorithm>

#include "tessera/base/divisors.h"
#include "tessera/base/text.h"
#include "tessera/models/family.h"
#include "tessera/train/host_pool.h"

namespace tessera {

namespace {

/// The given one first; of those that share the step out evenly the largest below each half.
std::vector<std::int64_t> sizes_of(const RunConfig& config) {
  std::vector<std::int64_t> out = {config.micro_batch_size};
  const std::int64_t data = config.parallel.data();
  if (config.given.contains("micro-batch-size") || config.global_batch_size % data != 0) return out;
  std::vector<std::int64_t> sizes = divisors_of(config.global_batch_size / data);
  std::ranges::reverse(sizes);
  for (const std::int64_t size : sizes) {
    if (2 * size <= out.back()) out.push_back(size);
  }
  return out;
}

bool recompute_asked(const RunConfig& config) {
  return config.given.contains("recompute-granularity") ||
         config.given.contains("checkpoint-activations");
}

bool may_offload(const RunConfig& config, const OffloadKind& kind) {
  return host_pool_of(config) != HostPool::SameMemory &&
         !(config.parallel.offload.*kind.offloads) && !config.given.contains(kind.field);
}

}  // namespace

MemoryChoice memory_choice_of(const RunConfig& config) {
  const ParallelConfig& parallel = config.parallel;
  return {parallel.recompute, parallel.recompute_layers, config.micro_batch_size, parallel.offload};
}

void set_memory_choice(RunConfig& config, const MemoryChoice& choice) {
  config.checkpoint_activations = false;
  config.recompute_granularity = to_text(choice.recompute);
  config.parallel.recompute_layers = choice.layers;
  config.micro_batch_size = choice.micro_batch_size;
  for (const OffloadKind& kind : kOffloadKinds) config.*kind.given = choice.offload.*kind.offloads;
}

std::string flags_text(const MemoryChoice& choice) {
  std::string out = text("--recompute-granularity ", to_text(choice.recompute));
  if (choice.recompute != Recompute::None && choice.layers != "all")
    out += text(" --recompute-layers ", choice.layers);
  out += text(" --micro-batch-size ", choice.micro_batch_size);
  for (const std::string& word : offload_words(choice.offload)) out += text(" --offload-", word);
  return out;
}

std::vector<std::string> offload_words(const OffloadStrategy& offload) {
  std::vector<std::string> out;
  for (const OffloadKind& kind : kOffloadKinds) {
    if (offload.*kind.offloads) out.emplace_back(kind.word);
  }
  return out;
}

std::string recomputed_layers(const MemoryChoice& choice) {
  return choice.recompute == Recompute::None ? "none" : choice.layers;
}

std::int64_t MemorySpace::size() const {
  const auto more = static_cast<std::int64_t>(recompute.size()) - 1;
  const std::int64_t ways = 1 + more * std::max<std::int64_t>(layers, 1);
  return ways * static_cast<std::int64_t>(sizes.size() * offload.size());
}

MemorySpace memory_space_of(const RunConfig& config) {
  MemorySpace out{memory_choice_of(config), {}, 0, sizes_of(config), {}};
  for (const Recompute what :
       {Recompute::None, Recompute::Elementwise, Recompute::Selective, Recompute::Full}) {
    if (what == out.asked.recompute || (what > out.asked.recompute && !recompute_asked(config)))
      out.recompute.push_back(what);
  }
  const bool free = !recompute_asked(config) && !config.given.contains("recompute-layers");
  if (free && out.asked.recompute <= Recompute::Elementwise && out.asked.layers == "all")
    out.layers = layer_count(config.model);
  out.offload = {out.asked.offload};
  for (const OffloadKind& kind : kOffloadKinds) {
    if (!may_offload(config, kind)) continue;
    const std::size_t known = out.offload.size();
    for (std::size_t i = 0; i < known; ++i) {
      out.offload.push_back(out.offload[i]);
      out.offload.back().*kind.offloads = true;
    }
  }
  return out;
}

std::vector<std::string> asked_against(const RunConfig& config) {
  std::vector<std::string> out;
  const auto name = [&](std::string_view field) {
    const auto found = config.given.find(field);
    if (found != config.given.end()) out.push_back(found->second);
  };
  if (config.parallel.recompute != Recompute::Full) {
    name("recompute-granularity");
    name("checkpoint-activations");
  }
  if (config.parallel.recompute_layers != "all") name("recompute-layers");
  if (config.micro_batch_size > 1) name("micro-batch-size");
  if (host_pool_of(config) == HostPool::SameMemory) return out;
  for (const OffloadKind& kind : kOffloadKinds) {
    if (!(config.parallel.offload.*kind.offloads)) name(kind.field);
  }
  return out;
}

}  // namespace tessera
