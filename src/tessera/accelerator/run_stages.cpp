#include "tessera/accelerator/run_stages.h"

#include <algorithm>
#include <span>
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

/// One stage on its way through a run.
class StageRun {
 public:
  StageRun(const LoadedStage& stage, std::span<const Seat> seats, const pjrt::Client& client,
           std::map<Key, Shards>& messages)
      : stage_(stage), seats_(seats), client_(client), messages_(messages) {
    if (stage.sums) {
      pjrt::Results results = stage.sums->executable.start(pjrt::Arguments(seats.size())).results;
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
      for (std::size_t r = 0; r < shards.size(); ++r)
        (*seats_[r].states)[path] = std::move(shards[r]);
    }
    for (const pjrt::Event& event : events_) event.wait();
  }

 private:
  bool has_messages(const hlo::Module& module, std::int64_t microbatch) const {
    return std::ranges::all_of(module.arguments, [&](const Port& port) {
      return port.kind != Port::Kind::Message || messages_.contains(key_of(port, microbatch));
    });
  }

  static Shards shards_of(pjrt::Results& results, std::size_t i) {
    Shards out;
    for (std::vector<pjrt::Buffer>& of_rank : results) out.push_back(std::move(of_rank[i]));
    return out;
  }

  const pjrt::Buffer* argument(const Port& port, std::size_t rank, std::int64_t microbatch) {
    switch (port.kind) {
      case Port::Kind::State: return &seats_[rank].states->at(port.name);
      case Port::Kind::Batch: return &seats_[rank].batch->at(port.name);
      case Port::Kind::Sum: return &sums_.at(port.name)[rank];
      case Port::Kind::Message: return &messages_.at(key_of(port, microbatch))[rank];
      case Port::Kind::Slot: return &slots_.at(key_of(port, microbatch))[rank];
      case Port::Kind::Microbatch: return &number(microbatch)[rank];
      default: throw Broken(text("a piece reads ", port));
    }
  }

  /// A micro-batch's number on each rank.
  const Shards& number(std::int64_t microbatch) {
    Shards& out = numbers_[microbatch];
    for (std::size_t r = out.size(); r < seats_.size(); ++r)
      out.push_back(pjrt::to_device(client_, std::as_bytes(std::span(&microbatch, 1)), DType::I64,
                                    {}, device(r)));
    return out;
  }

  const pjrt::Device& device(std::size_t rank) const {
    return client_.device(stage_.pieces[0].loaded.executable.devices()[rank]);
  }

  void start(const LoadedPiece& piece, std::int64_t microbatch) {
    const hlo::Module& module = piece.loaded.module;
    pjrt::Arguments arguments(seats_.size());
    for (std::size_t r = 0; r < seats_.size(); ++r) {
      for (const Port& port : module.arguments)
        arguments[r].push_back(argument(port, r, microbatch));
    }
    pjrt::Execution execution = piece.loaded.executable.start(arguments);
    for (pjrt::Event& event : execution.done) events_.push_back(std::move(event));
    for (const Port& port : module.arguments) let_go(port, microbatch);
    for (std::size_t i = 0; i < module.results.size(); ++i)
      keep(module.results[i], microbatch, shards_of(execution.results, i));
  }

  /// The buffers of a micro-batch go with the last piece that reads them.
  void let_go(const Port& port, std::int64_t microbatch) {
    if (!port.each_microbatch) return;
    const Key key = key_of(port, microbatch);
    if (++read_[key] < readers_.at(port.name)) return;
    if (port.kind == Port::Kind::Message) messages_.erase(key);
    if (port.kind == Port::Kind::Slot) slots_.erase(key);
  }

  void keep(const Port& port, std::int64_t microbatch, Shards shards) {
    switch (port.kind) {
      case Port::Kind::State: next_[port.name] = std::move(shards); break;
      case Port::Kind::Sum: sums_[port.name] = std::move(shards); break;
      case Port::Kind::Slot: slots_[key_of(port, microbatch)] = std::move(shards); break;
      case Port::Kind::Message: send(port, microbatch, shards); break;
      case Port::Kind::Metric:
        for (std::size_t r = 0; r < seats_.size(); ++r)
          (*seats_[r].metrics)[port.name] = std::move(shards[r]);
        break;
      default: throw Broken(text("a piece leaves ", port));
    }
  }

  /// From each rank to that of the other stage with its coordinates.
  void send(const Port& port, std::int64_t microbatch, const Shards& shards) {
    Shards moved;
    for (std::size_t r = 0; r < shards.size(); ++r) {
      const std::size_t to = static_cast<std::size_t>(port.to) * shards.size() + r;
      moved.push_back(shards[r].copy_to(client_.local_devices()[to]));
    }
    messages_[key_of(port, microbatch)] = std::move(moved);
  }

  const LoadedStage& stage_;
  std::span<const Seat> seats_;
  const pjrt::Client& client_;
  std::map<Key, Shards>& messages_;
  std::map<Key, Shards> slots_;
  std::map<std::string, Shards> sums_, next_;
  std::map<std::int64_t, Shards> numbers_;
  std::map<std::string, int> readers_;  // pieces that have it as an argument
  std::map<Key, int> read_;             // of those, how many have begun
  std::vector<pjrt::Event> events_;
  std::size_t at_ = 0, piece_ = 0;  // the action and the piece that are next
};

}  // namespace

void run_stages(const LoadedProgram& program, const std::vector<Seat>& seats,
                const pjrt::Client& client) {
  std::map<Key, Shards> messages;
  std::vector<StageRun> stages;
  const std::size_t ranks = seats.size() / program.stages.size();
  for (std::size_t s = 0; s < program.stages.size(); ++s)
    stages.emplace_back(program.stages[s], std::span(seats).subspan(s * ranks, ranks), client,
                        messages);
  for (bool began = true; began;) {
    began = false;
    for (StageRun& stage : stages) began = stage.advance() || began;
  }
  for (const StageRun& stage : stages) check(stage.done(), "stages wait for each other");
  for (StageRun& stage : stages) stage.finish();
}

}  // namespace tessera
