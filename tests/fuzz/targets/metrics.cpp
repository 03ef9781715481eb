/// metrics.jsonl of a run that goes on.

#include "tessera/train/metrics.h"
#include "fuzz/target.h"

namespace tessera::fuzz {

namespace {

constexpr std::int64_t kStep = 100;

void run(std::string_view input) {
  const KeptMetrics kept = keep_metrics(input, kStep);
  then([&] {
    const KeptMetrics again = keep_metrics(kept.lines, kStep);
    check(again == kept, "lines that were kept are not kept again: ", kept.lines);
  });
}

}  // namespace

const Target kTarget = {1 << 20, 512, run};

}  // namespace tessera::fuzz
