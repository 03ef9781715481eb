#pragma once
/// The search among all that a memory cap may choose.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tessera/device/device.h"
#include "tessera/train/memory_choice.h"
#include "tessera/train/memory_price.h"

namespace tessera {

/// A member of a MemorySpace, by what it takes of each list. More is leaner.
struct MemoryCandidate {
  std::size_t recompute = 0;
  std::int64_t layers = 0;  // the first so many; as asked for where the space has no choice of them
  std::size_t size = 0, offload = 0;
  friend auto operator<=>(const MemoryCandidate&, const MemoryCandidate&) = default;
};

/// Compiles candidates, each once, until the cheapest that fits is known. Goes by two rules that
/// hold but for details: what takes less memory costs more, and what takes least in each respect
/// takes least together.
class MemorySearch {
 public:
  MemorySearch(const RunConfig& config, Device& device, std::int64_t cap)
      : config_(config), device_(device), cap_(cap), space_(memory_space_of(config)) {}

  /// True if the run fits as asked for.
  bool fits_as_asked() { return fits({}); }
  const MemoryPrice& as_asked() { return at({}); }
  std::int64_t most_candidates();
  /// Looks for the cheapest; none: nothing fits.
  std::optional<MemoryCandidate> cheapest();
  /// From what takes least in each respect, with the largest and with the smallest micro-batches,
  /// goes on to neighbours that take less, until there is none or one fits.
  void descend();
  /// Of all that were compiled.
  MemoryCandidate leanest_known() const;
  const MemoryPrice& at(const MemoryCandidate& candidate);
  MemoryChoice choice(const MemoryCandidate& candidate) const;

 private:
  bool fits(const MemoryCandidate& candidate) { return at(candidate).capped_bytes <= cap_; }
  double best_seconds() const;
  bool spent() const;
  MemoryCandidate all_recomputed(std::size_t how, std::size_t size, std::size_t offload) const;
  MemoryCandidate most_recomputed(std::size_t how, std::size_t size, std::size_t offload);
  std::vector<MemoryCandidate> ends(std::size_t size, std::size_t offload) const;
  bool may_fit(std::size_t size, std::size_t offload);
  std::size_t first_size(std::size_t low, std::size_t offload);
  double least_seconds(std::size_t size, std::size_t offload);
  /// More than the run asks for.
  static bool recomputes(const MemoryCandidate& candidate) { return candidate.recompute > 0; }
  std::vector<MemoryCandidate> neighbours(const MemoryCandidate& candidate) const;
  void descend_from(std::size_t size);
  void offer(const MemoryCandidate& candidate);
  void relax(std::size_t size);
  void search_offload(std::size_t top, std::size_t offload);
  void search_layers(const MemoryCandidate& none, MemoryCandidate some);

  const RunConfig& config_;
  Device& device_;
  std::int64_t cap_;
  MemorySpace space_;
  std::map<MemoryCandidate, MemoryPrice> known_;
  std::int64_t work_ = 0;
  std::optional<MemoryCandidate> best_;  // the cheapest that is known to fit
};

}  // namespace tessera
