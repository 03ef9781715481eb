#include "tessera/accelerator/stage_bytes.h"

#include <algorithm>
#include <map>
#include <set>

#include "tessera/base/index.h"
#include "tessera/ops/collective.h"

namespace tessera {

namespace {

using hlo::Port;

struct HeldBytes {
  std::int64_t device = 0, host = 0;
  HeldBytes& operator+=(const HeldBytes& more) {
    device += more.device;
    host += more.host;
    return *this;
  }
  HeldBytes& operator-=(const HeldBytes& less) {
    device -= less.device;
    host -= less.host;
    return *this;
  }
};

/// A run in which nothing runs: what it would have on one device of each stage.
class RunOfBytes {
 public:
  RunOfBytes(const std::vector<std::vector<PieceMemory>>& stages, bool pinned_host)
      : stages_(stages), pinned_host_(pinned_host), held_(stages.size()), out_(stages.size()) {}

  /// What is there before the run, and no piece leaves.
  void find(const std::vector<hlo::Start>& starts) {
    std::set<hlo::ValueKey> known;
    for (const hlo::Start& start : starts) {
      for (const Port& port : piece(start).module->arguments) {
        const hlo::ValueKey key = hlo::key_of(port, start);
        if (is_there(port) && known.insert(key).second) held_[at(key.stage)] += bytes_of(port);
      }
    }
  }

  void start(const hlo::Start& start) {
    const auto& [module, memory] = piece(start);
    note(start, *module, memory);
    for (const auto& [argument, result] : module->donations)
      let_go(module->arguments[at(argument)], start);
    for (const int argument : start.last) let_go(module->arguments[at(argument)], start);
    for (const Port& port : module->results) keep(port, start);
  }

  std::vector<StageBytes> finish() { return std::move(out_); }

 private:
  const PieceMemory& piece(const hlo::Start& start) const {
    return stages_[at(start.stage)][at(start.piece)];
  }
  static bool is_there(const Port& port) {
    using Kind = Port::Kind;
    return port.kind == Kind::State || port.kind == Kind::Batch || port.kind == Kind::Microbatch;
  }
  HeldBytes bytes_of(const Port& port) const {
    const std::int64_t bytes = port.result.type.bytes();
    const bool host = pinned_host_ && memory_of(port.result) == Memory::Host;
    return host ? HeldBytes{0, bytes} : HeldBytes{bytes, 0};
  }

  void note(const hlo::Start& start, const hlo::Module& module,
            const pjrt::CompiledMemory& memory) {
    HeldBytes beside = held_[at(start.stage)];
    for (const Port& port : module.arguments) beside -= bytes_of(port);
    const StageBytes now{.module = module.name,
                         .microbatch = start.microbatch,
                         .argument = memory.argument,
                         .output = memory.output,
                         .alias = memory.alias,
                         .temporary = memory.temp,
                         .beside = beside.device,
                         .host = beside.host + memory.host_peak()};
    StageBytes& most = out_[at(start.stage)];
    const std::int64_t host = std::max(most.host, now.host);
    if (now.peak() > most.peak()) most = now;
    most.host = host;
  }

  void let_go(const Port& port, const hlo::Start& start) {
    if (is_there(port)) {  // a state that its next value takes over
      held_[at(start.stage)] -= bytes_of(port);
    } else if (const auto found = left_.find(hlo::key_of(port, start)); found != left_.end()) {
      held_[at(found->first.stage)] -= found->second;
      left_.erase(found);
    }
  }

  /// In the place of what had its name.
  void keep(const Port& port, const hlo::Start& start) {
    const hlo::ValueKey key = hlo::key_of(port, start);
    HeldBytes& left = left_[key];
    held_[at(key.stage)] -= left;
    left = bytes_of(port);
    held_[at(key.stage)] += left;
  }

  const std::vector<std::vector<PieceMemory>>& stages_;
  bool pinned_host_;
  std::vector<HeldBytes> held_;              // by stage
  std::map<hlo::ValueKey, HeldBytes> left_;  // by pieces; of states next values
  std::vector<StageBytes> out_;
};

}  // namespace

std::vector<StageBytes> stage_bytes(const std::vector<hlo::Start>& starts,
                                    const std::vector<std::vector<PieceMemory>>& stages,
                                    bool pinned_host) {
  RunOfBytes run(stages, pinned_host);
  run.find(starts);
  for (const hlo::Start& start : starts) run.start(start);
  return run.finish();
}

}  // namespace tessera
