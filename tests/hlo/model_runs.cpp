#include "hlo/model_runs.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/device/device.h"
#include "tessera/train/programs.h"

namespace tessera::test {

namespace {

constexpr const char *kSizes =
                         "--layers 2 --heads 4 --width 16 --ffn-width 24 --dropout 0.2 "
                         "--global-batch-size 12 --weight-decay 0.1 --clip-grad 0.1",
                     *kOfText = "--vocab-size 19 --context 8",
                     *kOfPictures = "--image-size 8 --patch-size 4 --image-channels 2 --classes 5",
                     *kOfPairs =
                         "--vocab-size 19 --context 8 --source-context 6 --decoder-layers 2";

const char* sizes_of(std::string_view family) {
  if (family == "vit") return kOfPictures;
  return family == "transformer" || family == "t5" || family == "bart" ? kOfPairs : kOfText;
}

std::vector<Setting> settings_of(const std::string& flags) {
  std::vector<Setting> out;
  for (const std::string_view word : split(flags, ' ')) {
    if (word.starts_with("--")) {
      out.push_back({std::string(word.substr(2)), {}, std::string(word)});
    } else if (!word.empty()) {
      out.back().values.emplace_back(word);
    }
  }
  for (Setting& setting : out) {
    if (setting.values.empty()) setting.values.emplace_back("true");
  }
  return out;
}

RunConfig config_of(const ModelRun& run) {
  Problems problems;
  std::vector<std::string> notices;
  const std::string flags =
      text("--family ", run.family, " ", kSizes, " ", sizes_of(run.family), " ", run.flags);
  // Of what is given twice the later counts.
  std::vector<Setting> settings = settings_of(flags);
  for (auto at = settings.begin(); at != settings.end();) {
    const auto same = [&](const Setting& later) { return later.key == at->key; };
    at = std::any_of(at + 1, settings.end(), same) ? settings.erase(at) : at + 1;
  }
  RunConfig out = configure({}, settings, problems, notices);
  out.device = "pjrt:cpu";
  complete(out);
  find_problems(out, problems);
  if (!problems.empty())
    throw Broken(text(run.family, " ", run.flags, ": ", problems.list()[0].what()));
  return out;
}

}  // namespace

std::vector<Program> ModelRun::programs() const {
  const RunSetup setup(config_of(*this));
  WantedPrograms wanted = wanted_programs(setup);
  wanted.evaluate = wanted.local = wanted.stages = true;
  wanted.texts = setup.task().text ? 2 : 0;
  const Compiled compiled = compile_programs(setup, wanted, *make_described_device());
  std::vector<Program> out;
  for (const Plan* plan : plans_of(compiled)) {
    for (const ProgramPlan& program : plan->programs) {
      if (program.local) out.push_back(*program.local);
    }
  }
  return out;
}

bool trains(const Program& program) {
  return std::ranges::any_of(program.regions, [](const Region& region) {
    return region.kind == RegionKind::Backward && region.graph.size() > 0;
  });
}

const std::vector<ModelRun>& model_runs() {
  static const std::vector<ModelRun> kRuns = {
      {"gpt2", "", true},
      {"gpt2", "--bf16", true},
      {"gpt2", "--devices 2", true},
      {"gpt2", "--devices 3 --zero-stage 3 --micro-batch-size 1", true},  // uneven
      {"gpt2", "--devices 2 --tensor-model-parallel-size 2 --sequence-parallel", true},
      {"gpt2", "--devices 2 --tensor-model-parallel-size 2 --recompute-granularity full", true},
      {"gpt2", "--devices 2 --context-parallel-size 2", true},
      {"gpt2",
       "--devices 4 --tensor-model-parallel-size 2 --sequence-parallel --zero-stage 1 "
       "--micro-batch-size 3 --bf16",
       true},
      {"gpt2", "--fp16 --optimizer lamb"},
      {"gpt2", "--devices 2 --fp16 --zero-stage 2 --optimizer sgd --nesterov --reduce-dtype f16"},
      {"gpt2", "--optimizer adam --no-bias --no-tied-head"},
      {"gpt2",
       "--optimizer adam-weight-decay --offload-optimizer --recompute-granularity selective"},
      {"gpt2", "--devices 4 --zero-stage 3 --bucket-mb 1 --bf16 --optimizer lamb"},
      {"gpt2", "--devices 5 --vocab-emb-dp --dropout 0"},
      {"gpt2", "--devices 6 --tensor-model-parallel-size 3 --heads 3 --width 18 --zero-stage 2"},
      {"gpt2",
       "--devices 8 --tensor-model-parallel-size 2 --context-parallel-size 2 --zero-stage 3 "
       "--sequence-parallel --micro-batch-size 3"},
      {"gpt2", "--devices 2 --pipeline-model-parallel-size 2 --micro-batch-size 4"},
      {"gpt2",
       "--devices 4 --pipeline-model-parallel-size 2 --tensor-model-parallel-size 2 "
       "--micro-batch-size 4 --pipeline-schedule zb-h1 --bf16"},
      {"gpt2", "--task sequence_classification --classes 5 --devices 2"},
      {"gpt2", "--reset-position-ids --reset-attention-mask --eod-mask-loss --devices 2"},
      {"llama", "--kv-heads 2", true},
      {"llama", "--kv-heads 2 --devices 4 --tensor-model-parallel-size 2 --micro-batch-size 3",
       true},
      {"llama", "--kv-heads 2 --devices 4 --context-parallel-size 2 --zero-stage 3 --bf16", true},
      {"llama", "--kv-heads 1 --tied-head --fp16 --devices 2"},
      {"llama",
       "--devices 4 --pipeline-model-parallel-size 2 --pipeline-schedule interleaved "
       "--layers 4 --micro-batch-size 3 --zero-stage 2"},
      {"mixtral",
       "--num-experts 3 --moe-z-loss-coeff 0.1 --devices 2 --expert-model-parallel-size 2", true},
      {"mixtral",
       "--num-experts 3 --devices 4 --expert-model-parallel-size 2 --tensor-model-parallel-size 2 "
       "--zero-stage 3 --bf16",
       true},
      {"deepseek_v3",
       "--num-experts 4 --moe-router-topk 2 --moe-router-num-groups 0 --moe-router-group-topk 0 "
       "--moe-layer-freq [0]+[1] --moe-ffn-hidden-size 12 --q-lora-rank 10 --kv-lora-rank 6 "
       "--qk-head-dim 6 --qk-pos-emb-head-dim 4 --v-head-dim 8 --devices 2 "
       "--tensor-model-parallel-size 2",
       true},
      {"bert", "--devices 4 --tensor-model-parallel-size 2 --micro-batch-size 3", true},
      {"bert", "--masked-positions 3 --devices 2 --context-parallel-size 2", true},
      {"bert", "--masked-positions 3 --fp16 --optimizer lamb --devices 3 --zero-stage 2"},
      {"bert", "--task token_classification --classes 5 --bf16 --devices 2"},
      {"bert",
       "--task question_answering --doc-stride 2 --devices 2 --tensor-model-parallel-size 2"},
      {"bert", "--task multiple_choice --texts 3 --devices 2 --context-parallel-size 2"},
      {"roberta", "--devices 2 --zero-stage 1 --optimizer adam-weight-decay", true},
      {"roberta", "--bf16 --devices 2 --tensor-model-parallel-size 2 --sequence-parallel"},
      {"albert", "--embedding-width 12 --devices 2 --micro-batch-size 3", true},
      {"albert", "--embedding-width 12 --fp16 --devices 2 --tensor-model-parallel-size 2"},
      {"transformer", "--bf16", true},
      {"transformer", "--devices 2 --tensor-model-parallel-size 2", true},
      {"transformer",
       "--post-norm --shared-embedding --sinusoidal-positions --no-tied-head "
       "--devices 3 --zero-stage 3 --micro-batch-size 2",
       true},
      {"transformer", "--activation relu --fp16 --optimizer sgd --devices 2"},
      {"transformer", "--devices 2 --pipeline-model-parallel-size 2 --micro-batch-size 4"},
      {"t5",
       "--activation gated-gelu --devices 4 --tensor-model-parallel-size 2 --micro-batch-size 3",
       true},
      {"t5",
       "--activation relu --no-tied-head --head-width 6 --devices 2 --context-parallel-size 2",
       true},
      {"t5", "--bf16 --distance-kinds 8 --far-distance 16 --devices 2 --optimizer lamb", true},
      {"bart", "--devices 2 --zero-stage 3", true},
      {"bart",
       "--bf16 --scale-embedding --devices 2 --tensor-model-parallel-size 2 "
       "--recompute-granularity full"},
      {"vit", "--devices 3 --zero-stage 3 --micro-batch-size 2", true},
      {"vit", "--devices 2 --tensor-model-parallel-size 2", true},
      {"vit", "--fp16 --devices 4 --tensor-model-parallel-size 2 --zero-stage 2 --optimizer lamb"},
      {"vit", "--bf16 --devices 2 --pipeline-model-parallel-size 2 --micro-batch-size 4"},
  };
  return kRuns;
}

}  // namespace tessera::test
