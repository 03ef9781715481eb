#pragma once
/// What a run runs on: the CPUs of this machine, or accelerators through a plugin.

#include <memory>
#include <string>

#include "tessera/device/device.h"
#include "tessera/runtime/engine.h"
#include "tessera/runtime/rates.h"

namespace tessera {

class Backend {
 public:
  virtual ~Backend() = default;
  /// In messages and summaries: "cpu", "pjrt:cpu PLUGIN VERSION".
  virtual std::string name() const = 0;
  /// The level of the instruction set that its kernels use; empty where there are no levels.
  virtual std::string isa() const { return ""; }
  /// How it multiplies matrices of f32, "fma" or "amx"; empty where there is no choice.
  virtual std::string f32_products() const { return ""; }
  /// Plans for this backend are compiled with its kernels, or with none where it has none that a
  /// plan could name: then bytes of workspaces are not in the plan.
  virtual Device& device() const = 0;
  /// True where the bytes of plans are in the main memory of this machine.
  virtual bool in_main_memory() const { return true; }
  /// True where start() reads what programs compute, ProgramPlan::local, and compiles it.
  virtual bool reads_programs() const { return false; }
  /// What runs the plan of one rank. `world`: where the plan is of one rank of several. The engine
  /// lives no longer than the backend and the world.
  virtual std::unique_ptr<Engine> start(Plan plan, Communicator* world,
                                        EngineOptions options) const = 0;
  /// FLOP/s of the best f32 matrix product alone, measured for about `seconds` at most.
  virtual double product_rate(double seconds) const = 0;
};

/// Runs on a device's kernels, which are this machine's. The device outlives it.
class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(Device& device) : device_(device) {}
  std::string name() const override { return device_.name(); }
  std::string isa() const override { return device_.isa(); }
  std::string f32_products() const override { return device_.f32_products(); }
  Device& device() const override { return device_; }
  std::unique_ptr<Engine> start(Plan plan, Communicator* world,
                                EngineOptions options) const override;
  double product_rate(double seconds) const override {
    return tessera::product_rate(device_, seconds);
  }

 private:
  Device& device_;
};

}  // namespace tessera
