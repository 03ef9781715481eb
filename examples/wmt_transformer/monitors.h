#pragma once
/// What the tutorial prints of a run: LossMonitor and TimeMonitor.

#include <cstdio>

#include "tessera/tessera.h"

namespace wmt {

/// epoch: 1 step: 1, loss is 9.9034
class LossMonitor : public tessera::TrainCallback {
 public:
  void on_step(const tessera::StepRecord& r) override {
    std::printf("epoch: %lld step: %lld, loss is %.4f\n", static_cast<long long>(r.place.epoch),
                static_cast<long long>(r.place.step), r.loss);
    std::fflush(stdout);
  }
  void on_valid(std::int64_t step, double loss, const tessera::NamedMeans& means) override {
    std::printf("step: %lld, validation loss is %.4f", static_cast<long long>(step), loss);
    for (const auto& [name, value] : means) std::printf(", %s is %.4f", name.c_str(), value);
    std::printf("\n");
  }
  void on_sample(std::int64_t step, const std::string& text) override {
    std::printf("step: %lld, sample: %s\n", static_cast<long long>(step), text.c_str());
  }
  void on_notice(const std::string& notice) override { std::printf("%s\n", notice.c_str()); }
};

/// step time: 12.345 ms
class TimeMonitor : public tessera::TrainCallback {
 public:
  void on_step(const tessera::StepRecord& r) override {
    std::printf("step time: %.3f ms\n", r.seconds * 1e3);
  }
};

}  // namespace wmt
