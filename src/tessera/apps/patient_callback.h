#pragma once
/// Callbacks that may take longer than ranks wait for each other.

#include <functional>
#include <string>
#include <vector>

#include "tessera/comm/communicator.h"
#include "tessera/train/callbacks.h"

namespace tessera {

/// Tells `callback` of a run, and meanwhile shows the other ranks that this one is alive, as with
/// work_alone: it is called in a thread of its own where there are others.
class PatientCallback : public TrainCallback {
 public:
  PatientCallback(TrainCallback& callback, Communicator* world)
      : callback_(callback), world_(world) {}
  void on_lock(const std::string& path) override;
  void on_start(const RunStart& start) override;
  void on_memory(const RunMemory& memory) override;
  void on_step(const StepRecord& record) override;
  void on_valid(std::int64_t step, double loss, const NamedMeans& means) override;
  void on_eval(const EvalRecord& record) override;
  void on_test(const TestRecord& record) override;
  void on_sample(std::int64_t step, const std::string& text) override;
  void on_save(std::int64_t step, const std::string& path) override;
  void on_profile(const std::string& path, const std::string& table) override;
  void on_notice(const std::string& notice) override;

 private:
  void alone(const std::function<void()>& work);
  TrainCallback& callback_;
  Communicator* world_;
};

/// The same of several.
class PatientCallbacks {
 public:
  PatientCallbacks(const std::vector<TrainCallback*>& callbacks, Communicator* world) {
    for (TrainCallback* callback : callbacks) patient_.emplace_back(*callback, world);
  }
  std::vector<TrainCallback*> all() {
    std::vector<TrainCallback*> out;
    for (PatientCallback& callback : patient_) out.push_back(&callback);
    return out;
  }

 private:
  std::vector<PatientCallback> patient_;
};

}  // namespace tessera
