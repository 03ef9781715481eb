#include "tessera/passes/interpret_program.h"

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "tessera/base/index.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/strategy.h"

namespace tessera {

namespace {

using Outputs = std::map<std::string, HostTensor>;
/// Messages that have been sent and not received, by name: shards by rank of the stage.
using Mail = std::map<std::string, std::deque<std::vector<HostTensor>>>;

/// The ranks of one stage.
class StageInterpreter {
 public:
  StageInterpreter(const Program& program, const Bindings& inputs, const Interpretation& how,
                   const Deleted& deleted, Mail& mail, const RanksObserver& observe = {})
      : program_(program),
        observe_(observe),
        how_(how),
        deleted_(deleted),
        replicas_(deleted.node < 0 || deleted.compare_replicas ? Replicas::Equal : Replicas::First),
        mail_(mail) {
    for (std::int64_t r = 0; r < mesh().ranks(); ++r) {
      bound_.emplace_back();
      ranks_.push_back(coordinates_of(mesh(), r));
    }
    for (const Region& region : program.regions) {
      for (const Node& node : region.graph.nodes()) bind(node, inputs);
    }
  }

  bool done() const { return action_ == program_.actions.size(); }

  /// Runs on until the end, or a message that has not been sent. False where nothing was done.
  bool advance() {
    bool moved = false;
    for (; !done(); moved = true) {
      if (!running_) begin();
      while (running_->next() < graph().size()) {
        if (!receive(graph().node(running_->next()))) return moved;
        running_->step();
        show(running_->next() - 1);
        send(running_->next() - 1);
        moved = true;
      }
      end();
    }
    return moved;
  }

  /// Names the action and the message that the stage waits for.
  std::string waits_for() const {
    return text(program_.name_of(program_.regions[at(region_)]), " ",
                program_.actions[action_].microbatch, " waits for ",
                std::get<std::string>(graph().node(running_->next()).attrs[0]));
  }

  const Outputs& outputs() const { return out_; }

 private:
  const Mesh& mesh() const { return program_.mesh(); }
  const Graph& graph() const { return program_.regions[at(region_)].graph; }

  /// Every rank's shard of a batch input or state.
  void bind(const Node& node, const Bindings& inputs) {
    if (node.op != &kBatch && node.op != &kState) return;
    const bool batch = node.op == &kBatch;
    const std::string& name = std::get<std::string>(node.attrs[0]);
    const auto& from = batch ? inputs.batch : inputs.states;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      auto& into = batch ? bound_[r].batch : bound_[r].states;
      if (into.contains(name)) continue;
      const auto whole = from.find(name);
      check(whole != from.end(), node.op->name, " '", name, "' is not bound");
      into[name] = shard_of(whole->second, node.results[0], mesh(), ranks_[r],
                            batch ? Beyond::Poison : Beyond::Zeros);
    }
  }

  void begin() {
    const Action& action = program_.actions[action_];
    region_ = program_.index_of(action.region, action.chunk);
    how_.at[std::string(kMicrobatchAxis)] = action.microbatch;
    for (const Node& node : graph().nodes()) {
      if (node.op == &kSlot) bind_slot(std::get<std::string>(node.attrs[0]), action);
    }
    running_ = std::make_unique<RanksInterpreter>(graph(), bound_, how_,
                                                  region_ == deleted_.region ? deleted_.node : -1);
  }

  /// Binds a slot to the value of this micro-batch, or to the one value that all share.
  void bind_slot(const std::string& name, const Action& action) {
    const auto found = slots_.find({name, place_of(name, action)});
    check(found != slots_.end(), "slot '", name, "' is read before it is filled");
    bind_slot(name, found->second);
  }
  /// In its ring.
  std::int64_t place_of(const std::string& slot, const Action& action) const {
    const auto ring = program_.rings.find(slot);
    return ring == program_.rings.end() ? 0 : action.microbatch % ring->second;
  }
  void bind_slot(const std::string& name, const std::vector<HostTensor>& shards) {
    for (std::size_t r = 0; r < shards.size(); ++r) bound_[r].slots[name] = shards[r];
  }

  void end() {
    for (const Output& output : graph().outputs())
      put_out(output, graph().result(output.value), running_->values(output.value));
    running_.reset();
    ++action_;
  }

  /// True where the node is none that receives, or its message is there.
  bool receive(const Node& node) {
    if (node.op != &kReceive) return true;
    const std::string& name = std::get<std::string>(node.attrs[0]);
    std::deque<std::vector<HostTensor>>& sent = mail_[name];
    if (sent.empty()) return false;
    bind_slot(name, sent.front());
    sent.pop_front();
    return true;
  }

  void show(NodeId id) const {
    if (!observe_) return;
    for (std::size_t i = 0; i < graph().node(id).results.size(); ++i)
      observe_(graph(), id, running_->values({id, static_cast<std::int32_t>(i)}));
  }

  void send(NodeId id) {
    for (const Output& output : graph().outputs()) {
      if (output.kind == Output::Kind::Send && output.value.node == id)
        mail_[output.name].push_back(running_->values(output.value));
    }
  }

  void put_out(const Output& output, const Result& result, std::vector<HostTensor> shards) {
    const Action& action = program_.actions[action_];
    switch (output.kind) {
      case Output::Kind::Send: break;
      case Output::Kind::Slot:
        slots_[{output.name, place_of(output.name, action)}] = std::move(shards);
        break;
      case Output::Kind::Accumulate:
        if (action.microbatch > 0) accumulate(output.name, reduction_over_time(result), shards);
        slots_[{output.name, 0}] = std::move(shards);
        break;
      case Output::Kind::Metric:
        out_[output.name] = joined(shards, result, mesh(), replicas_);
        break;
      case Output::Kind::Next:
        for (std::size_t r = 0; r < shards.size(); ++r) {
          check(has_zero_padding(shards[r], result, mesh(), ranks_[r]), "state '", output.name,
                "' is stored with something other than zeros in its padding, on rank ", r);
        }
        out_["next " + output.name] = joined(shards, result, mesh(), replicas_);
        break;
    }
  }

  /// Combines this micro-batch's shards with those of earlier ones.
  void accumulate(const std::string& slot, Monoid monoid, std::vector<HostTensor>& shards) const {
    for (std::size_t r = 0; r < shards.size(); ++r) {
      const HostTensor& before = slots_.at({slot, 0})[r];
      HostTensor total = shards[r].clone();
      for (std::int64_t e = 0; e < total.numel(); ++e)
        total.set(e, combine(monoid, total.at(e), before.at(e)));
      shards[r] = std::move(total);
    }
  }

  const Program& program_;
  const RanksObserver observe_;
  Interpretation how_;
  Deleted deleted_;
  Replicas replicas_;
  Mail& mail_;
  std::vector<Bindings> bound_;  // by rank; its slots are those of the action
  std::map<std::pair<std::string, std::int64_t>, std::vector<HostTensor>>
      slots_;  // by name and place in its ring: shards by rank
  std::vector<Coordinates> ranks_;
  std::size_t action_ = 0;
  int region_ = 0;                             // of the action
  std::unique_ptr<RanksInterpreter> running_;  // none between actions
  Outputs out_;
};

/// Outputs of all stages. A metric that several have is the same on all.
Outputs together(const std::vector<std::unique_ptr<StageInterpreter>>& stages) {
  Outputs out;
  for (const auto& stage : stages) {
    for (const auto& [name, value] : stage->outputs()) {
      const auto [known, fresh] = out.emplace(name, value);
      for (std::int64_t e = 0; !fresh && e < value.numel(); ++e) {
        const double here = value.at(e), there = known->second.at(e);
        check(here == there || (here != here && there != there), "stages differ: ", name, " is ",
              here, " on one and ", there, " on another, element ", e);
      }
    }
  }
  return out;
}

}  // namespace

Outputs interpret_program(const Program& program, const Bindings& inputs, const Interpretation& how,
                          const Deleted& deleted) {
  Mail mail;
  StageInterpreter one(program, inputs, how, deleted, mail);
  one.advance();
  check(one.done(), "a program of one stage waits for another");
  return one.outputs();
}

Outputs interpret_stages(const std::vector<Program>& stages, const Bindings& inputs,
                         const Interpretation& how, const RanksObserver& observe) {
  Mail mail;
  std::vector<std::unique_ptr<StageInterpreter>> running;
  for (const Program& program : stages)
    running.push_back(
        std::make_unique<StageInterpreter>(program, inputs, how, Deleted{}, mail, observe));
  for (bool moved = true; moved;) {
    moved = false;
    for (const auto& stage : running) moved = stage->advance() || moved;
  }
  std::string stuck;
  for (std::size_t s = 0; s < running.size(); ++s) {
    if (!running[s]->done()) stuck += text(", stage ", s, ": ", running[s]->waits_for());
  }
  check(stuck.empty(), "stages wait for each other", stuck);
  for (const auto& [name, left] : mail) check(left.empty(), "nobody receives ", name);
  return together(running);
}

}  // namespace tessera
