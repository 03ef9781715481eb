#include "tessera/runtime/guards.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace tessera {

namespace {

constexpr std::array<std::byte, 2> kPattern = {std::byte{0xC9}, std::byte{0xFF}};

struct Watched {
  std::byte* data;
  std::int64_t bytes;
  std::int32_t first, last;
  std::string name;
  bool guarded = false;  // since it came alive
  bool alive(std::int32_t time) const { return first <= time && time <= last; }
};

/// The guards of one program, shared by its kernels.
class Watch {
 public:
  Watch(const Plan& plan, const ProgramPlan& program, const PerMemory<std::byte*>& pools)
      : guard_(plan.guard_bytes) {
    constexpr std::int32_t kEver = GuardedBuffer::kEver;
    const auto at = [&](const Place& place) {
      const bool work = place.section == Place::Section::Work;
      return pools[place.memory] + place.offset + (work ? plan.state_bytes[place.memory] : 0);
    };
    for (const StatePlan& state : plan.states) {
      if (!plan.has(state) || state.place.section != Place::Section::State) continue;
      list_.push_back(
          {at(state.place), state.type.bytes(), 0, kEver, text("state '", state.state.path, "'")});
    }
    for (const ConstantPlan& constant : plan.constants)
      list_.push_back({at(constant.place), size_of(constant.dtype), 0, kEver,
                       text("constant ", constant.value)});
    for (const GuardedBuffer& b : program.guarded)
      list_.push_back({at(b.place), b.bytes, b.first, b.last, name_of(b, program)});
  }

  /// Of the buffers that are alive, where a call before this one may have used their guards:
  /// regions do not always run in the order of time.
  void fill(std::int32_t now) {
    for (Watched& w : list_) {
      const bool before = std::exchange(w.guarded, w.alive(now));
      if (before || !w.guarded) continue;
      each_guard(w, [&](std::byte* guard) {
        for (std::int64_t i = 0; i < guard_; ++i) guard[i] = expected(i);
      });
    }
  }

  /// What lies between the guards is filled anew: before a run.
  void forget() {
    for (Watched& w : list_) w.guarded = false;
  }

  void check_all(const Call& call, const Kernel& kernel) const {
    for (const Watched& w : list_) {
      if (!w.alive(call.time)) continue;
      each_guard(w, [&](const std::byte* guard) {
        bool intact = true;
        for (std::int64_t i = 0; i < guard_; ++i) intact &= guard[i] == expected(i);
        check(intact, "kernel ", kernel.name(), whose(call), " wrote ",
              guard < w.data ? "before " : "behind ", w.name, ", a buffer of ", w.bytes, " bytes");
      });
    }
  }

 private:
  static std::byte expected(std::int64_t i) { return kPattern[static_cast<std::size_t>(i) % 2]; }

  template <typename F>
  void each_guard(const Watched& w, const F& f) const {
    f(w.data - guard_);
    f(w.data + w.bytes);
  }

  static std::string whose(const Call& call) {
    return text(" of ", call.op->name, call.block.empty() ? "" : " in ", call.block);
  }

  /// What a buffer holds first.
  static std::string name_of(const GuardedBuffer& b, const ProgramPlan& program) {
    if (!b.copy.empty()) return text("state '", b.copy, "'");
    const auto inside = [&](const Place& place) {
      if (place.section != Place::Section::Work || place.memory != b.place.memory) return false;
      for (std::int64_t k = 0; k < place.depth; ++k) {
        const std::int64_t offset = place.offset + k * place.stride - b.place.offset;
        if (offset >= 0 && offset < std::max<std::int64_t>(b.bytes, 1)) return true;
      }
      return false;
    };
    for (const NamedTensor& input : program.batch) {
      if (b.first == 0 && input.place == b.place) return text("batch input '", input.name, "'");
    }
    for (const RegionPlan& region : program.regions) {
      for (const Call& call : region.calls) {
        if (call.time < b.first || call.time > b.last) continue;
        if (workspace_bytes(call) > 0 && inside(call.workspace))
          return "the workspace" + whose(call);
        for (std::size_t i = 0; i < call.outs.size(); ++i) {
          if (inside(call.outs[i])) return text("result ", i, whose(call));
        }
      }
    }
    return "a buffer";
  }

  std::int64_t guard_;
  std::vector<Watched> list_;
};

class WatchedKernel final : public Kernel {
 public:
  WatchedKernel(std::shared_ptr<Watch> watch, const Call& call)
      : watch_(std::move(watch)), call_(call) {}
  std::string_view name() const override { return call_.kernel->name(); }
  std::int64_t workspace_bytes() const override { return call_.kernel->workspace_bytes(); }

  void run(const KernelArgs& args) const override {
    watch_->fill(call_.time);
    call_.kernel->run(args);
    watch_->check_all(call_, *call_.kernel);
  }

 private:
  std::shared_ptr<Watch> watch_;
  Call call_;
};

}  // namespace

std::vector<std::function<void()>> watch_guards(Plan& plan, const PerMemory<std::byte*>& pools) {
  std::vector<std::function<void()>> forget;
  for (std::size_t p = 0; p < plan.programs.size(); ++p) {
    const auto watch = std::make_shared<Watch>(plan, plan.programs[p], pools);
    forget.push_back([watch] { watch->forget(); });
    for (RegionPlan& region : plan.programs[p].regions) {
      for (Call& call : region.calls) {
        if (!call.kernel) continue;  // what begins with a transfer is filled by the next kernel
        call.kernel = std::make_shared<WatchedKernel>(watch, call);
      }
    }
  }
  return forget;
}

}  // namespace tessera
