#include "tessera/accelerator/run_stages.h"

#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

using hlo::Port;

/// Of a value on a stage, one on each of its ranks.
using Shards = std::vector<pjrt::Buffer>;

/// A run on its way: what its pieces have left.
class StagesRun {
 public:
  StagesRun(const LoadedProgram& program, const LoadedPrograms& devices,
            std::span<RankBuffers> ranks, std::span<MicrobatchNumbers> numbers,
            std::vector<pjrt::Event>& started,
            const std::shared_ptr<std::atomic<std::int64_t>>& signs)
      : program_(program),
        devices_(devices),
        ranks_(ranks),
        numbers_(numbers),
        started_(started),
        signs_(signs) {}

  void start(const hlo::Start& start) {
    const LoadedModule& loaded = program_.stages[at(start.stage)][at(start.piece)];
    const hlo::Module& module = loaded.module;
    pjrt::Arguments arguments(ranks_of_stage());
    for (std::size_t r = 0; r < arguments.size(); ++r) {
      for (const Port& port : module.arguments) arguments[r].push_back(argument(port, start, r));
    }
    pjrt::Execution execution = loaded.executable.start(arguments);
    for (pjrt::Event& event : execution.done) started_.push_back(std::move(event));
    ++*signs_;
    for (const int i : start.last) left_.erase(hlo::key_of(module.arguments[at(i)], start));
    for (std::size_t i = 0; i < module.results.size(); ++i)
      keep(module.results[i], start, shards_of(execution.results, i));
  }

  /// Next values become those of the states, behind all that reads the old ones.
  void finish() {
    for (auto& [key, shards] : left_) {
      if (key.kind != Port::Kind::State) continue;
      for (std::size_t r = 0; r < shards.size(); ++r)
        rank(key.stage, r).states[key.name] = std::move(shards[r]);
    }
  }

 private:
  std::size_t ranks_of_stage() const { return ranks_.size() / program_.stages.size(); }
  std::size_t index_of(int stage, std::size_t r) const { return at(stage) * ranks_of_stage() + r; }
  RankBuffers& rank(int stage, std::size_t r) const { return ranks_[index_of(stage, r)]; }
  const pjrt::Device& device(int stage, std::size_t r) const {
    return devices_.device(devices_.processes().here().first +
                           static_cast<int>(index_of(stage, r)));
  }

  static Shards shards_of(pjrt::Results& results, std::size_t i) {
    Shards out;
    for (std::vector<pjrt::Buffer>& of_rank : results) out.push_back(std::move(of_rank[i]));
    return out;
  }

  const pjrt::Buffer* argument(const Port& port, const hlo::Start& start, std::size_t r) {
    switch (port.kind) {
      case Port::Kind::State: return &rank(start.stage, r).states.at(port.name);
      case Port::Kind::Batch: return &rank(start.stage, r).batch.at(port.name);
      case Port::Kind::Microbatch: return &number(start)[r];
      case Port::Kind::Sum:
      case Port::Kind::Message:
      case Port::Kind::Slot: return &left_.at(hlo::key_of(port, start))[r];
      default: throw Broken(text("a piece reads ", port));
    }
  }

  /// A micro-batch's number on each rank of a stage.
  const Shards& number(const hlo::Start& start) {
    Shards& out = numbers_[at(start.stage)][start.microbatch];
    for (std::size_t r = out.size(); r < ranks_of_stage(); ++r)
      out.push_back(pjrt::to_device(devices_.client(),
                                    std::as_bytes(std::span(&start.microbatch, 1)), DType::I64, {},
                                    device(start.stage, r)));
    return out;
  }

  void keep(const Port& port, const hlo::Start& start, Shards shards) {
    switch (port.kind) {
      case Port::Kind::State:
      case Port::Kind::Sum:
      case Port::Kind::Slot: left_[hlo::key_of(port, start)] = std::move(shards); break;
      case Port::Kind::Message: left_[hlo::key_of(port, start)] = sent(port, shards); break;
      case Port::Kind::Metric:
        for (std::size_t r = 0; r < shards.size(); ++r) read_metric(port, start, r, shards[r]);
        metrics_.push_back(std::move(shards));
        break;
      default: throw Broken(text("a piece leaves ", port));
    }
  }

  /// Behind what computes it, without asking the host.
  void read_metric(const Port& port, const hlo::Start& start, std::size_t r,
                   const pjrt::Buffer& value) {
    HostTensor& host = rank(start.stage, r).metrics[port.name] = HostTensor(port.result.type);
    started_.push_back(value.start_read(host.bytes()));
  }

  /// From each rank to that of the other stage with its coordinates.
  Shards sent(const Port& port, const Shards& shards) const {
    Shards out;
    for (std::size_t r = 0; r < shards.size(); ++r)
      out.push_back(shards[r].copy_to(device(port.to, r)));
    return out;
  }

  const LoadedProgram& program_;
  const LoadedPrograms& devices_;
  std::span<RankBuffers> ranks_;
  std::span<MicrobatchNumbers> numbers_;
  std::vector<pjrt::Event>& started_;
  const std::shared_ptr<std::atomic<std::int64_t>>& signs_;
  std::vector<Shards> metrics_;           // while they are read
  std::map<hlo::ValueKey, Shards> left_;  // by pieces, for later ones; of states next values
};

/// What the plugin's threads tell of events.
struct Ends {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t missing;
  std::exception_ptr failure;  // the first
};

/// In whichever order they end: one that does not may wait for a device whose event tells what went
/// wrong there.
void wait_for_all(std::vector<pjrt::Event>& events,
                  const std::shared_ptr<std::atomic<std::int64_t>>& signs) {
  const auto ends = std::make_shared<Ends>();
  ends->missing = events.size();
  for (const pjrt::Event& event : events) {
    event.tell([ends, signs](std::exception_ptr failure) {
      ++*signs;
      const std::scoped_lock lock(ends->mutex);
      --ends->missing;
      if (failure != nullptr && ends->failure == nullptr) ends->failure = std::move(failure);
      if (ends->missing == 0 || ends->failure != nullptr) ends->changed.notify_all();
    });
  }
  std::unique_lock lock(ends->mutex);
  ends->changed.wait(lock, [&] { return ends->missing == 0 || ends->failure != nullptr; });
  if (ends->failure != nullptr) std::rethrow_exception(std::exchange(ends->failure, nullptr));
  events.clear();
}

}  // namespace

void run_stages(const LoadedProgram& program, const LoadedPrograms& devices,
                std::span<RankBuffers> ranks, std::span<MicrobatchNumbers> numbers,
                std::vector<pjrt::Event>& started,
                const std::shared_ptr<std::atomic<std::int64_t>>& signs) {
  StagesRun run(program, devices, ranks, numbers, started, signs);
  for (const hlo::Start& start : program.starts) run.start(start);
  run.finish();
  wait_for_all(started, signs);
}

}  // namespace tessera
