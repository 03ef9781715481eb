#include "tessera/accelerator/run_stages.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <thread>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

using hlo::Port;

/// Of a value on a stage, one on each of its ranks.
using Shards = std::vector<pjrt::Buffer>;
/// A slot or a message, and its micro-batch where each has its own.
using Key = std::pair<std::string, std::int64_t>;

Key key_of(const Port& port, std::int64_t microbatch) {
  return {port.name, port.each_microbatch ? microbatch : -1};
}

/// What all stages of a run share.
struct Run {
  const LoadedPrograms& devices;
  std::vector<pjrt::Event>& started;
  std::atomic<std::int64_t>& signs;
  std::map<Key, Shards> messages = {};
};

/// One stage on its way through a run.
class StageRun {
 public:
  StageRun(const LoadedStage& stage, int first_rank, std::span<RankBuffers> ranks,
           MicrobatchNumbers& numbers, Run& run)
      : stage_(stage), first_rank_(first_rank), ranks_(ranks), numbers_(numbers), run_(run) {
    if (stage.sums) {
      pjrt::Results results = started(*stage.sums, pjrt::Arguments(ranks.size()));
      for (std::size_t i = 0; i < stage.sums->module.results.size(); ++i)
        sums_[stage.sums->module.results[i].name] = shards_of(results, i);
    }
    for (const LoadedPiece& piece : stage.pieces) {
      for (const Port& port : piece.loaded.module.arguments) ++readers_[port.name];
    }
  }

  bool done() const { return at_ == stage_.actions.size(); }

  /// Starts pieces until one needs a message that is not there; true where some began.
  bool advance() {
    bool began = false;
    for (; !done(); ++at_, piece_ = 0) {
      const Action& action = stage_.actions[at_];
      for (; piece_ < stage_.pieces.size(); ++piece_) {
        const LoadedPiece& piece = stage_.pieces[piece_];
        if (piece.region != action.region || piece.chunk != action.chunk) continue;
        if (!has_messages(piece.loaded.module, action.microbatch)) return began;
        start(piece, action.microbatch);
        began = true;
      }
    }
    return began;
  }

  /// Next values become those of the states, behind all that reads the old ones.
  void finish() {
    for (auto& [path, shards] : next_) {
      for (std::size_t r = 0; r < shards.size(); ++r) ranks_[r].states[path] = std::move(shards[r]);
    }
  }

 private:
  bool has_messages(const hlo::Module& module, std::int64_t microbatch) const {
    return std::ranges::all_of(module.arguments, [&](const Port& port) {
      return port.kind != Port::Kind::Message || run_.messages.contains(key_of(port, microbatch));
    });
  }

  static Shards shards_of(pjrt::Results& results, std::size_t i) {
    Shards out;
    for (std::vector<pjrt::Buffer>& of_rank : results) out.push_back(std::move(of_rank[i]));
    return out;
  }

  const pjrt::Buffer* argument(const Port& port, std::size_t rank, std::int64_t microbatch) {
    switch (port.kind) {
      case Port::Kind::State: return &ranks_[rank].states.at(port.name);
      case Port::Kind::Batch: return &ranks_[rank].batch.at(port.name);
      case Port::Kind::Sum: return &sums_.at(port.name)[rank];
      case Port::Kind::Message: return &run_.messages.at(key_of(port, microbatch))[rank];
      case Port::Kind::Slot: return &slots_.at(key_of(port, microbatch))[rank];
      case Port::Kind::Microbatch: return &number(microbatch)[rank];
      default: throw Broken(text("a piece reads ", port));
    }
  }

  /// A micro-batch's number on each rank.
  const Shards& number(std::int64_t microbatch) {
    Shards& out = numbers_[microbatch];
    for (std::size_t r = out.size(); r < ranks_.size(); ++r)
      out.push_back(pjrt::to_device(run_.devices.client(), std::as_bytes(std::span(&microbatch, 1)),
                                    DType::I64, {},
                                    run_.devices.device(first_rank_ + static_cast<int>(r))));
    return out;
  }

  pjrt::Results started(const LoadedModule& module, const pjrt::Arguments& arguments) {
    pjrt::Execution execution = module.executable.start(arguments);
    for (pjrt::Event& event : execution.done) run_.started.push_back(std::move(event));
    ++run_.signs;
    return std::move(execution.results);
  }

  void start(const LoadedPiece& piece, std::int64_t microbatch) {
    const hlo::Module& module = piece.loaded.module;
    pjrt::Arguments arguments(ranks_.size());
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      for (const Port& port : module.arguments)
        arguments[r].push_back(argument(port, r, microbatch));
    }
    pjrt::Results results = started(piece.loaded, arguments);
    for (const Port& port : module.arguments) let_go(port, microbatch);
    for (std::size_t i = 0; i < module.results.size(); ++i)
      keep(module.results[i], microbatch, shards_of(results, i));
  }

  /// The buffers of a micro-batch go with the last piece that reads them.
  void let_go(const Port& port, std::int64_t microbatch) {
    if (!port.each_microbatch) return;
    const Key key = key_of(port, microbatch);
    if (++read_[key] < readers_.at(port.name)) return;
    if (port.kind == Port::Kind::Message) run_.messages.erase(key);
    if (port.kind == Port::Kind::Slot) slots_.erase(key);
  }

  void keep(const Port& port, std::int64_t microbatch, Shards shards) {
    switch (port.kind) {
      case Port::Kind::State: next_[port.name] = std::move(shards); break;
      case Port::Kind::Sum: sums_[port.name] = std::move(shards); break;
      case Port::Kind::Slot: slots_[key_of(port, microbatch)] = std::move(shards); break;
      case Port::Kind::Message: send(port, microbatch, shards); break;
      case Port::Kind::Metric:
        for (std::size_t r = 0; r < ranks_.size(); ++r)
          ranks_[r].metrics[port.name] = std::move(shards[r]);
        break;
      default: throw Broken(text("a piece leaves ", port));
    }
  }

  /// From each rank to that of the other stage with its coordinates.
  void send(const Port& port, std::int64_t microbatch, const Shards& shards) {
    Shards moved;
    for (std::size_t r = 0; r < shards.size(); ++r) {
      const std::size_t to = static_cast<std::size_t>(port.to) * shards.size() + r;
      moved.push_back(shards[r].copy_to(run_.devices.device(static_cast<int>(to))));
    }
    run_.messages[key_of(port, microbatch)] = std::move(moved);
  }

  const LoadedStage& stage_;
  int first_rank_;
  std::span<RankBuffers> ranks_;
  MicrobatchNumbers& numbers_;
  Run& run_;
  std::map<Key, Shards> slots_;
  std::map<std::string, Shards> sums_, next_;
  std::map<std::string, int> readers_;  // pieces that have it as an argument
  std::map<Key, int> read_;             // of those, how many have begun
  std::size_t at_ = 0, piece_ = 0;      // the action and the piece that are next
};

/// In whichever order they end: one that does not may wait for a device whose event tells what went
/// wrong there.
void wait_for_all(std::vector<pjrt::Event>& events, std::atomic<std::int64_t>& signs) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  while (events.size() > 1) {
    const auto ended = std::stable_partition(
        events.begin(), events.end(), [](const pjrt::Event& event) { return !event.ready(); });
    if (ended == events.end()) {
      const Clock::duration waited = (Clock::now() - begin) / 64;
      std::this_thread::sleep_for(std::clamp<Clock::duration>(waited, std::chrono::microseconds(20),
                                                              std::chrono::milliseconds(1)));
      continue;
    }
    std::for_each(ended, events.end(), [](const pjrt::Event& event) { event.wait(); });
    events.erase(ended, events.end());
    ++signs;
  }
  for (const pjrt::Event& last : events) last.wait();
  events.clear();
}

}  // namespace

void run_stages(const LoadedProgram& program, const LoadedPrograms& devices,
                std::span<RankBuffers> ranks, std::span<MicrobatchNumbers> numbers,
                std::vector<pjrt::Event>& started, std::atomic<std::int64_t>& signs) {
  Run run{devices, started, signs};
  std::vector<StageRun> stages;
  const std::size_t of_stage = ranks.size() / program.stages.size();
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const std::size_t first = s * of_stage;
    stages.emplace_back(program.stages[s],
                        devices.processes().here().first + static_cast<int>(first),
                        ranks.subspan(first, of_stage), numbers[s], run);
  }
  for (bool began = true; began;) {
    began = false;
    for (StageRun& stage : stages) began = stage.advance() || began;
  }
  for (const StageRun& stage : stages) check(stage.done(), "stages wait for each other");
  for (StageRun& stage : stages) stage.finish();
  wait_for_all(started, signs);
}

}  // namespace tessera
