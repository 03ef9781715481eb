#pragma once
/// A step that has been compiled, on its devices.

#include <map>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "tessera/c_api/step_request.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/launch/console.h"
#include "tessera/tensor/host_tensor.h"
#include "tessera/user_code/led_ranks.h"

namespace tessera {

/// An array of somebody else: row-major, without gaps.
struct GivenArray {
  std::string name;
  DType dtype = DType::F32;
  Shape shape;
  const std::byte* data = nullptr;

  std::span<const std::byte> bytes() const {
    return {data, static_cast<std::size_t>(shape.numel() * size_of(dtype))};
  }
};

/// One call at a time.
class CompiledStep {
 public:
  /// Compiles, and writes first values. Errors: as of compile().
  explicit CompiledStep(StepRequest request);

  /// {"devices": 2, "mesh": "dp=2", "memory": {...}, "states": {"up.weight": {"shape": [4, 2],
  /// "dtype": "f32", "role": "parameter", "lies": "[tp,-]"}}, "programs": {"step": {"inputs": ...,
  /// "outputs": ..., "sends": [...]}}, "search": null}
  const CallJson& report() const { return report_; }

  /// Runs a program; its outputs are then in outputs(). Errors: Fault::Usage, Fault::Data: no such
  /// program; inputs that it lacks or does not have, or of other types; numbers out of range. Then
  /// nothing has run, and the next call may. After another error no call may.
  void run(const std::string& program, const std::vector<GivenArray>& inputs);
  const std::map<std::string, HostTensor>& outputs() const { return outputs_; }

  /// All that checkpoints hold, whole, by path.
  std::map<std::string, HostTensor> states();
  /// Writes parameters. Errors: Fault::Usage: one that is not there, or of another type.
  void set_parameters(const std::vector<GivenArray>& values);
  /// The path of the checkpoint. Errors: as of save_checkpoint.
  std::string save(const std::string& folder);
  /// Errors: Fault::Checkpoint: as of Checkpoint::open and RankGroup::load.
  void load(const std::string& path);

 private:
  /// An error of somebody else's numbers or files does not end the devices.
  void lead(const std::function<void(RankGroup& group)>& work);
  Plan compile_rank(const Backend& backend, int rank) const;
  void make_report(const Plan& plan);

  StepRequest request_;
  std::ostream nowhere_;
  Console console_;
  CallJson report_;
  std::vector<TensorEntry> entries_;  // of a checkpoint
  std::map<std::string, HostTensor> outputs_;
  std::unique_ptr<LedRanks> ranks_;
};

}  // namespace tessera
