#include "tessera/runtime/executor.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "tessera/ops/collective.h"
#include "tessera/runtime/guards.h"
#include "tessera/tensor/element.h"

namespace tessera {

namespace {
constexpr std::int64_t kGuardBytes = 4096, kScanBytes = 1 << 20;
constexpr std::byte kGuard{0xC9};
/// As floats of any width not a number, as integers -1.
constexpr std::byte kPoison{0xFF};
constexpr std::byte kSecondPattern{0x5A};

std::int64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

/// A transfer between its start and its wait.
struct UnderWay {
  Ticket sent, received;  // the second of a permute
  std::uint64_t copy = 0;
};

/// An operand or a result in a ring.
struct Ringed {
  bool out = false;
  std::size_t index = 0;
  Place place;
  std::byte* begin = nullptr;
};
}  // namespace

struct Executor::Ready {
  const Kernel* kernel;
  const Transfer* transfer;  // of a start
  UnderWay* under_way;       // of a start and its wait: the first of call->tickets
  Communicator* group;
  Device* copies;      // of a copy from one memory to another
  Collective receive;  // of a permute
  std::vector<const void*> ins;
  std::vector<void*> outs;
  std::vector<Ringed> ringed;  // ins and outs that lie elsewhere in each micro-batch
  void* workspace;
  const Call* call;

  void run(std::int64_t microbatch) {
    microbatch += call->ahead;
    for (const Ringed& r : ringed) {
      std::byte* const now = r.begin + microbatch % r.place.depth * r.place.stride;
      if (r.out) {
        outs[r.index] = now;
      } else {
        ins[r.index] = now;
      }
    }
    if (kernel != nullptr) return kernel->run({ins.data(), outs.data(), workspace, microbatch});
    UnderWay& mine = under_way[microbatch % call->tickets];
    if (call->is_start()) {
      copies != nullptr ? start_copy(mine) : start(mine);
    } else {
      copies != nullptr ? copies->wait_copy(mine.copy) : wait(mine);
    }
  }

 private:
  void start_copy(UnderWay& mine) const {
    mine.copy = copies->start_copy(outs[0], ins[0], call->copied_bytes);
  }

  void start(UnderWay& mine) const {
    void* const out = outs.empty() ? nullptr : outs[0];
    const void* const ids = ins.size() > 1 ? ins[1] : nullptr;
    mine.sent = group->start(transfer->collective, ins.empty() ? nullptr : ins[0], out,
                             static_cast<const std::int32_t*>(ids));
    if (receive.kind == CollectiveKind::Recv) mine.received = group->start(receive, nullptr, out);
  }

  static void wait(UnderWay& mine) {
    for (Ticket* ticket : {&mine.received, &mine.sent}) {
      if (ticket->owner != nullptr) ticket->owner->wait(*ticket);
    }
  }
};

struct Executor::Runnable {
  const ProgramPlan* plan;
  std::vector<std::vector<Ready>> regions;  // as the plan's
  std::vector<UnderWay> under_way;          // by ticket
  BatchInputs inputs;
  std::vector<std::span<std::byte>> poisoned;  // the work sections without the metrics
  std::function<void()> forget_guards = {};    // empty without guards
};

namespace {

/// Adds what is left of `whole`, the work section of a memory, without the metrics that lie in it.
void add_without_metrics(std::vector<std::span<std::byte>>& out, std::span<std::byte> whole,
                         Memory memory, const ProgramPlan& program) {
  std::vector<std::pair<std::int64_t, std::int64_t>> kept;  // begin and end
  for (const NamedTensor& metric : program.metrics) {
    const std::int64_t begin = metric.place.offset;
    if (metric.place.section == Place::Section::Work && metric.place.memory == memory)
      kept.emplace_back(begin, begin + metric.type.bytes());
  }
  const auto size = static_cast<std::int64_t>(whole.size());
  kept.emplace_back(size, size);
  std::sort(kept.begin(), kept.end());
  std::int64_t at = 0;
  for (const auto& [begin, end] : kept) {
    if (begin > at)
      out.push_back(
          whole.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(begin - at)));
    at = std::max(at, end);
  }
}

/// How many copies may be under way at a time: each is waited for before it starts again, and all
/// of them before the program ends.
std::int64_t most_copies(const Plan& plan) {
  std::int64_t most = 0;
  for (const ProgramPlan& program : plan.programs) {
    std::int64_t starts = 0;
    for (const RegionPlan& region : program.regions) {
      starts += std::ranges::count_if(
          region.calls, [](const Call& call) { return call.op == &kCopy && call.is_start(); });
    }
    most = std::max(most, starts);
  }
  return most;
}

}  // namespace

Executor::Executor(Plan plan, Device& device, Communicator* world, EngineOptions options)
    : plan_(std::move(plan)), device_(device), world_(world), options_(options) {
  const std::int64_t ranks = plan_.ranks();
  check(ranks == (world == nullptr ? 1 : world->size()), "a plan of ", ranks,
        " ranks for a world of ", world == nullptr ? 1 : world->size());
  for (const Memory memory : kMemories) {
    const std::int64_t bytes = plan_.bytes(memory);
    if (memory == Memory::Host && bytes == 0) continue;
    pools_[memory] = static_cast<std::byte*>(device_.allocate(memory, bytes + kGuardBytes));
    device_.fill(pools_[memory] + bytes, kGuard, kGuardBytes);
  }
  join_base();
  if (const std::int64_t copies = most_copies(plan_); copies > 0) device_.expect_copies(copies);
  for (const ConstantPlan& constant : plan_.constants) {
    HostTensor value(constant.dtype, {});
    value.set(0, constant.value);
    device_.copy(address(constant.place), value.bytes().data(), value.type().bytes());
  }
  std::vector<std::function<void()>> forget_guards(plan_.programs.size());
  if (plan_.guard_bytes > 0) forget_guards = watch_guards(plan_, pools_);
  for (const ProgramPlan& program : plan_.programs) {
    auto runnable =
        std::make_unique<Runnable>(Runnable{&program, {}, {}, BatchInputs(program.name), {}});
    for (const Memory memory : kMemories) {
      const auto bytes = static_cast<std::size_t>(plan_.work_bytes(memory));
      if (bytes > 0)
        add_without_metrics(runnable->poisoned, {work(memory), bytes}, memory, program);
    }
    for (const NamedTensor& input : program.batch)
      runnable->inputs.add(input.name, input.type, address(input.place), input.range);
    runnable->under_way.resize(static_cast<std::size_t>(program.transfers));
    for (const RegionPlan& region : program.regions) {
      std::vector<Ready>& calls = runnable->regions.emplace_back();
      for (const Call& call : region.calls) {
        Ready ready{};
        ready.kernel = call.kernel.get();
        ready.workspace = address(call.workspace);
        ready.call = &call;
        if (call.ticket >= 0)
          ready.under_way = &runnable->under_way[static_cast<std::size_t>(call.ticket)];
        if (call.op == &kCopy) ready.copies = &device_;
        if (call.transfer) {
          ready.transfer = &*call.transfer;
          ready.group = group(*call.transfer);
          const Collective& c = call.transfer->collective;
          if (call.transfer->from >= 0)
            ready.receive = Collective::recv(c.dtype, c.whole, call.transfer->from, c.name);
        }
        for (const Place& in : call.ins) {
          if (in.depth > 1) ready.ringed.push_back({false, ready.ins.size(), in, address(in)});
          ready.ins.push_back(address(in));
        }
        for (const Place& out : call.outs) {
          if (out.depth > 1) ready.ringed.push_back({true, ready.outs.size(), out, address(out)});
          ready.outs.push_back(address(out));
        }
        calls.push_back(std::move(ready));
      }
    }
    runnable->forget_guards = std::move(forget_guards[programs_.size()]);
    programs_.push_back(std::move(runnable));
  }
}

Communicator* Executor::group(const Transfer& transfer) {
  Joined& known = groups_[text(transfer.group, " ", transfer.group.messages)];
  if (!known.group) known = {join(transfer.axes, "."), world_->join(transfer.group)};
  return known.group.get();
}

std::map<std::string, Counts> Executor::sent() const {
  std::map<std::string, Counts> out;
  for (const auto& [name, joined] : groups_) {
    Counts& sum = out[joined.axes];
    for (std::size_t kind = 0; kind < sum.size(); ++kind) {
      sum[kind].calls += joined.group->counts()[kind].calls;
      sum[kind].bytes += joined.group->counts()[kind].bytes;
    }
  }
  return out;
}

Executor::~Executor() {
  programs_.clear();  // what is under way after a failure lets go of the pools
  for (const Memory memory : kMemories) {
    if (pools_[memory] != nullptr) device_.release(pools_[memory]);
  }
}

void Executor::join_base() {
  if (plan_.base_bytes == 0) return;
  const auto make = [&]() -> std::shared_ptr<void> {
    writes_base_ = true;
    return device_.allocate_for_several(plan_.base_bytes);
  };
  base_ = world_ == nullptr ? make() : world_->in_common(plan_.base_key(), make);
}

bool Executor::writes_state(std::string_view path) const {
  const StatePlan* const state = plan_.find_state(path);
  return state == nullptr || state->place.section != Place::Section::Base || writes_base_;
}

std::byte* Executor::address(const Place& place) const {
  switch (place.section) {
    case Place::Section::State: return pools_[place.memory] + place.offset;
    case Place::Section::Work: return work(place.memory) + place.offset;
    case Place::Section::Base: return static_cast<std::byte*>(base_.get()) + place.offset;
  }
  return nullptr;
}

const Executor::Runnable& Executor::runnable(std::string_view name) const {
  for (const auto& program : programs_) {
    if (program->plan->name == name) return *program;
  }
  throw Broken(text("the plan has no program '", name, "'"));
}

BatchInputs& Executor::begin(std::string_view name, const RunOptions& options) {
  Runnable& program = runnable(name);
  last_ = nullptr;
  if (options.used_bytes != nullptr) fill_work(second_pattern_ ? kSecondPattern : kPoison);
  if (program.forget_guards) program.forget_guards();
  program.inputs.begin();
  return program.inputs;
}

void Executor::finish(std::string_view name, const RunOptions& options) {
  Runnable& program = runnable(name);
  program.inputs.require_filled();
  std::vector<CallTime>* const times = options.times;
  for (const Action& action : program.plan->actions) {
    for (Ready& call : program.regions[program.plan->index_of(action.region, action.chunk)]) {
      if (!program.plan->runs(*call.call, action)) continue;
      const std::int64_t begin = times == nullptr ? 0 : now_ns();
      if (world_ != nullptr) world_->alive();
      call.run(action.microbatch);
      if (times != nullptr) times->push_back({call.call, action, begin, now_ns()});
    }
  }
  last_ = &program;
  if (options.used_bytes != nullptr) {
    const std::byte pattern = second_pattern_ ? kSecondPattern : kPoison;
    for (const Memory memory : kMemories)
      (*options.used_bytes)[memory] = end_of_used(memory, pattern);
    options.used_bytes->device += plan_.base_bytes;
    second_pattern_ = !second_pattern_;
  }
  if (!options_.poison) return;
  for (const std::span<std::byte> bytes : program.poisoned)
    device_.fill(bytes.data(), kPoison, static_cast<std::int64_t>(bytes.size()));
}

void Executor::fill_work(std::byte with) {
  for (const Memory memory : kMemories) {
    if (plan_.work_bytes(memory) > 0) device_.fill(work(memory), with, plan_.work_bytes(memory));
  }
}

std::int64_t Executor::end_of_used(Memory memory, std::byte pattern) const {
  std::vector<std::byte> part(kScanBytes);
  for (std::int64_t end = plan_.bytes(memory); end > plan_.state_bytes[memory];) {
    const std::int64_t begin = std::max(plan_.state_bytes[memory], end - kScanBytes);
    device_.copy(part.data(), pools_[memory] + begin, end - begin);
    while (end > begin && part[static_cast<std::size_t>(end - begin - 1)] == pattern) --end;
    if (end > begin) return end;
  }
  return plan_.state_bytes[memory];
}

std::size_t Executor::calls_of_run(std::string_view name) const {
  const ProgramPlan& program = *runnable(name).plan;
  std::size_t out = 0;
  for (const Action& action : program.actions) {
    for (const Call& call : program.region(action.region, action.chunk).calls)
      out += program.runs(call, action) ? 1 : 0;
  }
  return out;
}

HostTensor Executor::metric(std::string_view program, std::string_view name) const {
  const NamedTensor& metric =
      find_metric(plan_, last_ == nullptr ? nullptr : last_->plan, program, name);
  HostTensor out(metric.type);
  device_.copy(out.bytes().data(), address(metric.place), out.type().bytes());
  return out;
}

double Executor::scalar(std::string_view program, std::string_view name) const {
  const NamedTensor& metric =
      find_metric(plan_, last_ == nullptr ? nullptr : last_->plan, program, name);
  std::array<std::byte, 16> value;  // more than any element takes
  device_.copy(value.data(), address(metric.place), size_of(metric.type.dtype));
  return element(metric.type.dtype, value.data(), 0);
}

bool Executor::guard_intact() const {
  return std::ranges::all_of(kMemories, [&](Memory memory) {
    if (pools_[memory] == nullptr) return true;
    std::array<std::byte, kGuardBytes> guard;
    device_.copy(guard.data(), pools_[memory] + plan_.bytes(memory), kGuardBytes);
    return std::ranges::all_of(guard, [](std::byte b) { return b == kGuard; });
  });
}

std::span<std::byte> Executor::state(std::string_view path) const {
  const StatePlan* state = plan_.find_state(path);
  check(state != nullptr, "the plan has no state '", path, "'");
  return {address(state->place), static_cast<std::size_t>(state->type.bytes())};
}

}  // namespace tessera
