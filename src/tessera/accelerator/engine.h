#pragma once
/// One rank's end of a run on an accelerator: its states are buffers of its device.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/accelerator/session.h"
#include "tessera/runtime/engine.h"

namespace tessera {

class AcceleratorEngine final : public Engine {
 public:
  /// All ranks of the world make theirs together. States are zero until they are written.
  /// Errors: as of LoadedPrograms::open.
  AcceleratorEngine(LoadedPrograms& devices, Plan plan, Communicator* world);

  const Plan& plan() const override { return *plan_; }
  BatchInputs& begin(std::string_view program, const RunOptions& options) override;
  void finish(std::string_view program, const RunOptions& options) override;
  HostTensor metric(std::string_view program, std::string_view name) const override;
  double scalar(std::string_view program, std::string_view name) const override;
  /// Copies it to the host, and waits for the device.
  StateBytes read_state(std::string_view path) const override;
  std::int64_t host_bytes() const override { return host_bytes_; }

 private:
  struct Runnable {
    const ProgramPlan* plan;
    std::size_t number;  // in the plan
    BatchInputs inputs;
    std::map<std::string, HostTensor, std::less<>> batch;
    std::set<std::string, std::less<>> read = {};  // of the batch, by the pieces of its stage
  };
  /// Where work fails, what the device has stays as it is: the device may be lost.
  template <typename Work>
  auto on_device(const Work& work) const;
  Runnable& runnable(std::string_view name);
  const StatePlan& state(std::string_view path) const;
  pjrt::Buffer upload(const TensorType& type, std::span<const std::byte> bytes,
                      Memory memory = Memory::Device) const;
  /// Of its stage.
  const std::vector<LoadedModule>& pieces(const LoadedProgram& program) const;
  void make_states(const LoadedProgram& program, Buffers& states);
  std::span<std::byte> begin_write(std::string_view path) override;
  void end_write(std::string_view path) override;

  std::shared_ptr<const Plan> plan_;
  Communicator* world_;
  std::shared_ptr<Session> session_;
  std::vector<std::unique_ptr<Runnable>> runnables_;
  const ProgramPlan* last_ = nullptr;  // whose metrics can be read
  std::int64_t host_bytes_ = 0;
  std::vector<std::byte> written_;  // a state, until end_write
};

}  // namespace tessera
