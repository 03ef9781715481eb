#pragma once
/// Events of a run, for a progress display, a test or a service.

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "tessera/models/judge.h"
#include "tessera/token_files/samples.h"
#include "tessera/train/host_pool.h"
#include "tessera/train/outside_arena.h"

namespace tessera {

struct RunStart {
  std::vector<std::string> about;  // what is trained, on what and with what: lines for people
  std::int64_t first_step = 0, steps = 0;  // attempts done, attempts wanted
  std::int64_t parameters = 0, tokens_per_step = 0;
  std::int64_t peak_bytes = 0, save_copy_bytes = 0;
  std::int64_t base_bytes = 0;  // of the peak: what devices of a process have in common
  HostUse host;
  std::int64_t main_memory_bytes = 0;  // of all ranks, if each takes what rank 0 does
  double flops_per_step = 0, recomputed_flops_per_step = 0, compile_seconds = 0;
  std::int64_t devices = 1;
  double product_flops_per_s = 0;  // the best f32 product of one device; 0: not measured
  /// That do most of the work, of FLOPs; the first does most. On a plugin, Backend::name.
  std::vector<std::string> kernels;
};

/// The memory of a run, once its arena is there.
struct RunMemory {
  std::int64_t arena_bytes = 0, huge_page_bytes = 0;  // of it on huge pages; 0: not in this process
  OutsideArena outside;
};

/// One attempt.
struct StepRecord {
  std::int64_t step = 0;  // attempts done, this one included
  double loss = 0, lr = 0, grad_norm = 0;
  bool ok = true;  // false: skipped, because the loss or a gradient was inf or nan
  double seconds = 0, tokens_per_s = 0;
  EpochPlace place = {};
  NamedMeans means = {};
  /// Of each layer with experts, how many tokens chose each; empty: the model has none.
  std::vector<std::vector<double>> tokens_per_expert = {};
  std::int64_t tokens = 0;                // of the step, padding included
  std::optional<double> loss_scale = {};  // by which the loss was multiplied
  std::string backend = {};               // Backend::name of accelerators; empty: processors
  std::int64_t host_bytes = 0;            // that crossed between rank 0's device and the host
};

/// What the model predicts of the held-out data after so many epochs.
struct EvalRecord {
  std::int64_t epoch = 0, step = 0;
  double loss = 0;
  NamedMeans scores = {};        // of Judge
  std::string predictions = {};  // the file of them; empty: none was written
};

/// What the model predicts of the test data at the end of the run. Its epoch is 0.
struct TestRecord {
  EvalRecord measured;   // its step: that of the weights
  bool best = false;     // they are those of the best checkpoint; false: the last ones
  bool labelled = true;  // false: nothing is measured, and there are predictions alone
};

class TrainCallback {
 public:
  virtual ~TrainCallback() = default;
  /// OUTPUT is held, by this lock file, which goes when the run ends.
  virtual void on_lock(const std::string& /*path*/) {}
  virtual void on_start(const RunStart&) {}
  virtual void on_memory(const RunMemory&) {}
  virtual void on_step(const StepRecord&) {}
  virtual void on_valid(std::int64_t /*step*/, double /*loss*/, const NamedMeans&) {}
  virtual void on_eval(const EvalRecord&) {}
  virtual void on_test(const TestRecord&) {}
  virtual void on_sample(std::int64_t /*step*/, const std::string& /*text*/) {}
  virtual void on_save(std::int64_t /*step*/, const std::string& /*path*/) {}
  virtual void on_profile(const std::string& /*path*/, const std::string& /*table*/) {}
  virtual void on_notice(const std::string&) {}
};

/// All that was told of the run.
struct KeptNotices : TrainCallback {
  void on_notice(const std::string& notice) override { all.push_back(notice); }
  std::vector<std::string> all;
};

/// Calls one of them on each of `callbacks`.
template <typename... Args>
void tell(const std::vector<TrainCallback*>& callbacks, void (TrainCallback::*what)(Args...),
          const std::type_identity_t<Args>&... args) {
  for (TrainCallback* callback : callbacks) (callback->*what)(args...);
}

}  // namespace tessera
