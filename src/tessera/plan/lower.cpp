#include "tessera/plan/lower.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "tessera/base/hash.h"
#include "tessera/base/index.h"
#include "tessera/ir/strategy.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/elementwise.h"
#include "tessera/plan/block_use.h"
#include "tessera/plan/kernels.h"
#include "tessera/plan/shards.h"
#include "tessera/plan/values.h"
#include "tessera/plan/work_section.h"

namespace tessera {

namespace {

std::uint64_t key_of(const Node& node, std::uint64_t seed) {
  const int i = node.op->attrs.find("key");
  return i < 0 ? 0 : random_key(seed, std::get<std::string>(node.attrs[at(i)]));
}

/// A call whose operands are still values.
struct Draft {
  Call call;
  std::vector<int> ins, outs;  // StoredValues
  std::int32_t time = 0;
  std::int64_t workspace_bytes = 0;
  std::size_t workspace = 0;
};

class Lowering {
 public:
  Lowering(const std::string& name, const Program& program, const Timeline& time,
           StateSection& states, Device& device, const LowerOptions& options)
      : regions_(program.regions),
        program_of_(program),
        time_(time),
        states_(states),
        kernels_(device),
        seed_(options.seed),
        exact_layout_(options.exact_layout),
        shards_(program.mesh(), options.rank),
        values_(program, time, device, options.shares_buffers),
        work_{{Memory::Device, values_, states.guard_bytes},
              {Memory::Host, values_, states.guard_bytes}},
        drafts_(program.regions.size()) {
    program_.name = name;
    for (const Region& region : regions_) {
      for (const State& state : region.graph.states())
        state_of_.try_emplace(state.path, &state, &region.graph.result(state.value));
    }
    for (const Accumulation& a : values_.accumulations())
      accumulations_[{a.region, a.value.node}].push_back(&a);
    program_.microbatches = program.mesh().size(kMicrobatchAxis);
    for (const Region& region : regions_)
      program_.regions.push_back({region.kind, region.chunk, {}});
    program_.actions = program.actions;
    program_.edges = program.edges;
  }

  ProgramPlan run() {
    for (int r = 0; r < static_cast<int>(regions_.size()); ++r) draft_region(r);
    for (auto& drafts : drafts_) std::ranges::stable_sort(drafts, {}, &Draft::time);
    store_states();
    place_buffers();
    place_calls();
    name_inputs();
    program_.buckets = values_.buckets();
    program_.blocks = block_uses(regions_, values_, program_);
    for (const BlockUse& block : program_.blocks)
      program_.recomputed_flops += block.recomputed_flops;
    return std::move(program_);
  }

 private:
  const StoredValue& value(int v) const { return values_.values()[at(v)]; }
  int update() const { return static_cast<int>(regions_.size()) - 1; }

  KernelRequest request(OpCall call, const std::vector<int>& ins, const std::vector<int>& outs,
                        std::uint64_t key) const {
    KernelRequest out{std::move(call), {}, {}, {}, key, seed_, 0};
    out.coordinate = shards_.coordinate(out.call);
    for (const int v : ins) {
      out.in_strides.push_back(value(v).strides);
      out.ins.push_back(shards_.info(*value(v).result));
    }
    for (const int v : outs) out.outs.push_back(shards_.info(*value(v).result));
    return out;
  }

  void add_call(int region, const Name& block, const KernelRequest& request, Draft draft) {
    const When when = draft.call.when;
    const bool recomputed = draft.call.recomputed;
    draft.call = kernels_.call(request);
    draft.call.when = when;
    draft.call.recomputed = recomputed;
    draft.call.block = block;
    draft.workspace_bytes = tessera::workspace_bytes(draft.call);
    const double times =
        draft.call.when == When::Always
            ? (in_loop(regions_[at(region)].kind) ? static_cast<double>(program_.microbatches)
                                                  : 1.0)
            : 0.0;  // accumulation is not counted
    program_.flops += draft.call.flops * times;
    drafts_[at(region)].push_back(std::move(draft));
  }

  void draft_region(int r) {
    const Graph& graph = regions_[at(r)].graph;
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph.node(id);
      if (node.op == &kReceive) draft_receive(r, id);
      if (node.op->traits.leaf || values_.is_view(r, id)) {
        accumulate(r, id);
        continue;
      }
      Draft draft;
      for (const ValueId input : node.inputs) draft.ins.push_back(values_.value(r, input));
      for (int i = 0; i < static_cast<int>(node.results.size()); ++i)
        draft.outs.push_back(values_.value(r, {id, i}));
      draft.time = time_.of(r, id).first;
      draft.call.recomputed = node.recompute != Recompute::None;
      if (is_transfer(*node.op)) {
        draft_transfer(r, id, std::move(draft));
        accumulate(r, id);
        continue;
      }
      const KernelRequest what =
          request(graph.call(id), draft.ins, draft.outs, key_of(node, seed_));
      const int region = time_.region_at(draft.time);
      if (region != r) draft.call.when = When::Last;  // joins what the loop has completed
      try {
        add_call(region, node.block, what, std::move(draft));
      } catch (const Error& error) {
        throw error.with(describe(graph, id));
      }
      accumulate(r, id);
    }
    for (const Output& output : graph.outputs()) {
      if (output.kind == Output::Kind::Send) draft_send(r, output);
    }
  }

  /// The first of n new ones.
  std::int32_t take_tickets(std::int64_t n) {
    program_.transfers += static_cast<std::int32_t>(n);
    return program_.transfers - static_cast<std::int32_t>(n);
  }

  void draft_start(int r, std::int32_t time, const Call& call, int in, int out) {
    Draft draft;
    draft.call = call;
    draft.call.bytes = 0;  // most are moved while one waits
    if (in >= 0) draft.ins = {in};
    if (out >= 0) draft.outs = {out};
    draft.time = time;
    drafts_[at(r)].push_back(std::move(draft));
  }

  void draft_wait(int r, std::int32_t time, const Call& start) {
    Draft draft;
    draft.call = start;
    draft.call.transfer = {};
    draft.time = time;
    drafts_[at(r)].push_back(std::move(draft));
  }

  /// In the loop a receive is posted some micro-batches ahead: the first ones before the loop.
  void draft_receive(int r, NodeId id) {
    const Node& node = regions_[at(r)].graph.node(id);
    const int v = values_.value(r, {id, 0});
    const bool loops = in_loop(regions_[at(r)].kind);
    const Program::Message& message = program_of_.message(std::get<std::string>(node.attrs[0]));
    Call call = shards_.message(CollectiveKind::Recv, message, node.results[0], node.block);
    call.tickets = static_cast<std::int32_t>(values_.buffers()[at(value(v).buffer)].depth);
    call.ticket = take_tickets(call.tickets);
    for (; loops && call.ahead < message.ahead; ++call.ahead)
      draft_start(0, time_.ends[0], call, -1, v);
    draft_start(r, time_.begins[at(r)], call, -1, v);
    call.ahead = 0;
    draft_wait(r, time_.of(r, id).first, call);
  }

  /// Waited for before the place of the value is filled again, and before the loop ends.
  void draft_send(int r, const Output& output) {
    const int v = values_.value(r, output.value);
    const Busy& busy = time_.of(r, output.value.node);
    Call call =
        shards_.message(CollectiveKind::Send, program_of_.message(output.name), *value(v).result,
                        regions_[at(r)].graph.node(output.value.node).block);
    call.tickets = static_cast<std::int32_t>(values_.buffers()[at(value(v).buffer)].depth);
    call.ticket = take_tickets(call.tickets);
    draft_start(r, busy.last + busy.last % 2, call, v, -1);
    if (!in_loop(regions_[at(r)].kind)) return draft_wait(r, time_.ends[at(r)], call);
    draft_wait(r, time_.begins[at(r)], call);
    for (const std::int32_t end = call.ticket + call.tickets; call.ticket < end; ++call.ticket) {
      Call one = call;
      one.tickets = 1;
      draft_wait(update(), time_.begins[at(update())], one);
    }
  }

  /// A start and a wait, each where its time lies. One of Update whose time lies in the loop runs
  /// in the last micro-batch only, which completes the sum.
  void draft_transfer(int r, NodeId id, Draft start) {
    start.call = shards_.transfer(regions_[at(r)].graph, id);
    start.call.ticket = take_tickets(1);
    Draft wait;
    wait.time = time_.of(r, id).last;
    wait.call.op = start.call.op, wait.call.types = start.call.types;
    wait.call.block = start.call.block, wait.call.ticket = start.call.ticket;
    wait.call.bytes = std::exchange(start.call.bytes, 0);  // most are moved while one waits
    for (Draft* draft : {&start, &wait}) {
      const int region = time_.region_at(draft->time);
      if (region != r) draft->call.when = When::Last;
      drafts_[at(region)].push_back(std::move(*draft));
    }
  }

  /// After a node whose results are accumulated: the first micro-batch writes, later ones combine.
  void accumulate(int r, NodeId id) {
    const auto found = accumulations_.find({r, id});
    if (found == accumulations_.end()) return;
    for (const Accumulation* accumulation : found->second) {
      const Accumulation& a = *accumulation;
      const int from = values_.value(r, a.value);
      const TensorType& type = value(from).result->type;
      const Attrs none;
      const auto add = [&](const OpDef& op, OpCall::Types types, std::vector<int> ins, When when) {
        Draft draft;
        draft.ins = std::move(ins);
        draft.outs = {a.into};
        draft.time = time_.of(r, id).last;
        draft.call.when = when;
        const KernelRequest what =
            request(OpCall(op, std::move(types), none, {&type}), draft.ins, draft.outs, 0);
        add_call(r, regions_[at(r)].graph.node(id).block, what, std::move(draft));
      };
      add(kIdentity, {&type}, {from}, When::First);
      const Monoid monoid = reduction_over_time(regions_[at(r)].graph.result(a.value));
      const OpDef& combine = monoid == Monoid::Max   ? kMaximum
                             : monoid == Monoid::Min ? kMinimum
                                                     : kAdd;
      add(combine, {&type, &type}, {a.into, from}, When::Later);
    }
  }

  /// Next values that do not lie in their state yet are copied there at the very end.
  void store_states() {
    const int r = update();
    const Graph& graph = regions_[at(r)].graph;
    const Attrs none;
    for (const Output& output : graph.outputs()) {
      if (output.kind != Output::Kind::Next) continue;
      const int from = values_.value(r, output.value);
      const auto& buffer = values_.buffers()[at(value(from).buffer)];
      const bool stored =
          buffer.home == Buffer::Home::State && value(buffer.values[0]).name == output.name;
      if (stored) continue;
      // The next value of another state may be read here, as it stays to the end; the value before
      // may be overwritten by now.
      check(value(from).kind != StoredValue::Kind::State, "the next value of state '", output.name,
            "' is another state");
      Draft draft;
      draft.ins = {from};
      draft.time = time_.stores + static_cast<std::int32_t>(stores_.size());
      const TensorType& type = value(from).result->type;
      const KernelRequest what =
          request(OpCall(kIdentity, {&type}, none, {&type}), {from}, {from}, 0);
      stores_.emplace_back(drafts_[at(r)].size(), output.name);
      add_call(r, "", what, std::move(draft));
    }
  }

  /// A call runs, and has its scratch memory, where its results lie.
  WorkSection& work_of(const Draft& draft) {
    return work_[memory_of(*value(draft.outs.empty() ? draft.ins[0] : draft.outs[0]).result)];
  }

  void place_buffers() {
    for (const Region& region : regions_) {
      for (const State& state : region.graph.states()) {
        if (state.role == Role::Copy) state_place(state.path);
      }
    }
    for (const CopyPlace& copy : states_.copies) work_[copy.place.memory].add_copy(copy);
    for (auto& region : drafts_) {
      for (Draft& draft : region) {
        if (draft.workspace_bytes > 0)
          draft.workspace = work_of(draft).add_workspace(draft.workspace_bytes, draft.time);
      }
    }
    for (const Memory memory : kMemories) {
      WorkSection& work = work_[memory];
      work.lay_out(exact_layout_);
      program_.work[memory] = work.use();
      for (const GuardedBuffer& buffer : work.guarded()) program_.guarded.push_back(buffer);
    }
    program_.memory = work_[Memory::Device].content(regions_);
  }

  Place place(int v) {
    const StoredValue& stored = value(v);
    const Buffer& buffer = values_.buffers()[at(stored.buffer)];
    const std::int64_t shift = stored.offset_elements * size_of(stored.result->type.dtype);
    Place out;
    if (buffer.home == Buffer::Home::Work) {
      out = work_[buffer.memory].place(stored.buffer);
    } else if (buffer.home == Buffer::Home::State) {
      out = state_place(value(buffer.values[0]).name);
    } else {
      const StoredValue& constant = value(buffer.values[0]);
      const Node& node = regions_[at(constant.region)].graph.node(constant.id.node);
      out = states_.constant(constant.result->type.dtype, std::get<double>(node.attrs[0]));
    }
    out.offset += shift;
    return out;
  }

  Place state_place(const std::string& path) {
    const auto& [state, lies] = state_of_.at(path);
    return states_.place(*state, *lies);
  }

  void place_calls() {
    for (int r = 0; r < static_cast<int>(drafts_.size()); ++r) {
      for (Draft& draft : drafts_[at(r)]) {
        for (const int v : draft.ins) draft.call.ins.push_back(place(v));
        for (const int v : draft.outs) draft.call.outs.push_back(place(v));
        draft.call.time = draft.time;
        if (draft.workspace_bytes > 0)
          draft.call.workspace = work_of(draft).workspace(draft.workspace);
        program_.regions[at(r)].calls.push_back(std::move(draft.call));
      }
    }
    for (const auto& [call, path] : stores_) {
      program_.regions[at(update())].calls[call].outs = {state_place(path)};
    }
    // A state that no call reads or writes is a state all the same.
    for (const auto& [path, state] : state_of_) states_.place(*state.first, *state.second);
  }

  NamedTensor named(const std::string& name, int v) {
    const Result& lies = *value(v).result;
    return {name, lies.type, place(v), lies.logical, lies.placement};
  }

  void name_inputs() {
    for (int v = 0; v < static_cast<int>(values_.values().size()); ++v) {
      const StoredValue& stored = value(v);
      if (stored.kind == StoredValue::Kind::Batch) {
        program_.batch.push_back(named(stored.name, v));
      }
    }
    std::ranges::sort(program_.batch, {}, &NamedTensor::name);
    for (int r = 0; r < static_cast<int>(regions_.size()); ++r) {
      for (const Output& output : regions_[at(r)].graph.outputs()) {
        if (output.kind != Output::Kind::Metric) continue;
        const int v = values_.value(r, output.value);
        program_.metrics.push_back(named(output.name, v));
      }
    }
  }

  const std::vector<Region>& regions_;
  const Program& program_of_;
  const Timeline& time_;
  StateSection& states_;
  KernelTable kernels_;
  std::uint64_t seed_;
  const bool exact_layout_;
  RankShards shards_;
  ProgramValues values_;
  PerMemory<WorkSection> work_;
  ProgramPlan program_;
  std::unordered_map<std::string, std::pair<const State*, const Result*>> state_of_;
  std::map<std::pair<int, NodeId>, std::vector<const Accumulation*>>
      accumulations_;                       // by region and node
  std::vector<std::vector<Draft>> drafts_;  // by region
  std::vector<std::pair<std::size_t, std::string>>
      stores_;  // calls of Update that write a state: its index, its path
};

}  // namespace

ProgramPlan lower(const std::string& name, const Program& program, const Timeline& time,
                  StateSection& states, Device& device, const LowerOptions& options) {
  return Lowering(name, program, time, states, device, options).run();
}

}  // namespace tessera
