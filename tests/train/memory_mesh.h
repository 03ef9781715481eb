#pragma once
/// Meshes and pipelines on which the ways to need less memory are tried, and the model they train:
/// four layers, with dropout.

#include <ostream>
#include <string>
#include <vector>

#include "train/one_device.h"
#include "train/staged_run.h"
#include "train/step_plan.h"

namespace tessera {

struct MemoryMesh {
  const char* name;
  const char* family;
  PipelineStrategy pipeline;
  ParallelConfig parallel;  // of one stage
  OptimizerKind optimizer = OptimizerKind::AdamW;

  ModelConfig model() const { return tiny(family, 4); }
  std::vector<TaskInput> inputs() const { return task_of(model()).inputs; }

  Graph step(OptimizerConfig of = {}) const {
    of.kind = optimizer;
    of.schedule.kind = ScheduleKind::Constant;
    return train_step(task_of(model()), of, 12);
  }

  Strategy strategy() const {
    Strategy out = strategy_of(parallel, BatchSplit::Cut, model());
    out.pipeline = pipeline;
    return out;
  }
};

inline std::ostream& operator<<(std::ostream& out, const MemoryMesh& mesh) {
  return out << mesh.name;
}

inline std::string memory_mesh_name(const testing::TestParamInfo<MemoryMesh>& info) {
  return info.param.name;
}

/// Data, tensor, sequence and context parallel, ZeRO 0 to 3, 1 to 4 stages, every schedule.
inline std::vector<MemoryMesh> memory_meshes() {
  constexpr OptimizerKind kLamb = OptimizerKind::Lamb;
  return {
      {"One", "gpt2", {}, {}},
      {"OneLlamaLamb", "llama", {}, {}, kLamb},
      {"OneSgd", "gpt2", {}, {}, OptimizerKind::Sgd},
      {"Mb3", "gpt2", {}, parallel_of(1, 1, 1, false, 0, 3)},
      {"Dp2", "gpt2", {}, parallel_of(2, 1, 1, false, 0, 2)},
      {"Dp2Zero1", "llama", {}, parallel_of(2, 1, 1, false, 1, 2)},
      {"Dp2Zero2", "gpt2", {}, parallel_of(2, 1, 1, false, 2, 3)},
      {"Dp2Zero3", "llama", {}, parallel_of(2, 1, 1, false, 3, 1)},
      {"Dp3Zero3Lamb", "gpt2", {}, parallel_of(3, 1, 1, false, 3, 2), kLamb},
      {"Tp2", "gpt2", {}, parallel_of(1, 2, 1, false, 0, 1)},
      {"Tp2Sp", "llama", {}, parallel_of(1, 2, 1, true, 0, 2)},
      {"Cp2", "gpt2", {}, parallel_of(1, 1, 2, false, 0, 1)},
      {"Cp2Tp2Dp2Zero3", "gpt2", {}, parallel_of(2, 2, 2, true, 3, 2)},
      {"Gpipe2", "gpt2", {2, 1, "gpipe"}, parallel_of(1, 1, 1, false, 0, 4)},
      {"One2Tp2", "gpt2", {2, 1, "1f1b"}, parallel_of(1, 2, 1, false, 0, 4)},
      {"One3Zero2", "llama", {3, 1, "1f1b"}, parallel_of(2, 1, 1, false, 2, 3)},
      {"One4Zero1", "gpt2", {4, 1, "1f1b"}, parallel_of(2, 1, 1, false, 1, 6)},
      {"Interleaved2Lamb",
       "llama",
       {2, 2, "interleaved"},
       parallel_of(1, 1, 1, false, 0, 4),
       kLamb},
      {"ZbH12Zero3", "gpt2", {2, 1, "zb-h1"}, parallel_of(2, 1, 1, false, 3, 3)},
      {"ZbH13", "gpt2", {3, 1, "zb-h1"}, parallel_of(1, 1, 1, false, 0, 6)},
      {"ZbV2Zero1", "llama", {2, 2, "zb-v"}, parallel_of(2, 1, 1, false, 1, 3)},
      {"ZbV2Sp", "llama", {2, 2, "zb-v"}, parallel_of(1, 2, 1, true, 0, 4)},
      {"MixtralEp2Zero3", "mixtral", {}, experts(2, parallel_of(4, 1, 1, false, 3, 2))},
      {"MixtralOne2Ep2", "mixtral", {2, 1, "1f1b"}, experts(2, parallel_of(2, 1, 1, false, 1, 4))},
      {"DeepseekV3Ep2Tp2Sp", "deepseek_v3", {}, experts(2, parallel_of(2, 2, 1, true, 1, 2))},
      {"BertDp2Tp2SpZero3", "bert", {}, parallel_of(2, 2, 1, true, 3, 2)},
      {"BertCp2", "bert", {}, parallel_of(1, 1, 2, false, 0, 2)},
      {"BertMaskedOne3Zero2", "bert-masked", {3, 1, "1f1b"}, parallel_of(2, 1, 1, false, 2, 3)},
      {"BertMaskedZbV2", "bert-masked", {2, 2, "zb-v"}, parallel_of(1, 2, 1, false, 0, 4)},
      {"AlbertDp2Tp2SpZero3", "albert", {}, parallel_of(2, 2, 1, true, 3, 2)},
      {"AlbertMaskedZbV2", "albert-masked", {2, 2, "zb-v"}, parallel_of(1, 2, 1, false, 0, 4)},
      {"RobertaTp2Sp", "roberta", {}, parallel_of(1, 2, 1, true, 0, 2)},
      {"EncoderDecoderTp2Sp", "transformer", {}, parallel_of(1, 2, 1, true, 0, 2)},
      {"T5Tp2Sp", "t5", {}, parallel_of(1, 2, 1, true, 0, 2)},
      {"T5One4Zero3", "t5", {4, 1, "1f1b"}, parallel_of(2, 1, 1, false, 3, 6)},
      {"BartZbV2", "bart", {2, 2, "zb-v"}, parallel_of(1, 1, 1, false, 0, 4)},
      {"EncoderDecoderOne4Zero3", "transformer", {4, 1, "1f1b"}, parallel_of(2, 1, 1, false, 3, 6)},
      {"EncoderDecoderZbV2", "transformer", {2, 2, "zb-v"}, parallel_of(1, 1, 1, false, 0, 4)}};
}

}  // namespace tessera
