/// DeepSeek-V3 (DeepSeek-AI 2024, arXiv 2412.19437): latent attention, experts whose use a bias evens
/// out, beside one that every token reads, and first layers without.

#include "tessera/base/size.h"
#include "tessera/models/rope_scaling.h"
#include "tessera/models/rotary_lm.h"

namespace tessera {

namespace {

constexpr ReadField kDeepseekV3OwnReads[] = {
    {"ffn-width", "0 is 8/3 x width, up to a multiple of 4"},
    {"moe-shared-expert-intermediate-size", "0 is an expert's"},
    {"q-lora-rank"},
    {"kv-lora-rank", "0 is 4 x qk-head-dim"},
    {"qk-head-dim"},
    {"qk-pos-emb-head-dim"},
    {"v-head-dim"}};
constexpr auto kDeepseekV3Reads =
    joined(kDecoderReads, kRopeReads, kRouterReads, kDeepseekV3OwnReads);

constexpr std::int64_t kMostChannels = 1 << 20;  // of a head

void find_deepseek_v3_problems(const ModelConfig& c, FieldProblems& problems) {
  const std::size_t before = problems.size();
  if (c.latent.kv_rank == 0)
    problems.add({"kv-lora-rank"},
                 "kv-lora-rank is 0; keys and values are made of so many numbers "
                 "of a token, so it must be 1 or more");
  for (const auto& [name, width] : {std::pair("qk-head-dim", c.latent.plain_width),
                                    {"qk-pos-emb-head-dim", c.latent.rotary_width},
                                    {"v-head-dim", c.latent.value_width}}) {
    if (width < 1 || width > kMostChannels)
      problems.add({name}, text(name, " is ", width, "; it must be from 1 to ", kMostChannels));
  }
  if (problems.size() > before) return;
  for (const FieldProblem& problem : tessera::problems(c.latent)) problems.add(problem);
  if (problems.size() > before) return;
  try {
    rotary_rates(rotary_of(c), c.latent.rotary_width, c.context);
  } catch (const Error& error) {
    problems.add({"rope-scaling", "rope-base"}, text("rope-scaling: ", error.what()));
  }
}

}  // namespace

extern constinit const ModelFamily kDeepseekV3 = {
    .name = "deepseek_v3",
    .doc = "latent attention, experts beside one that every token reads, first layers without",
    .reads = kDeepseekV3Reads,
    .tasks = kExpertTasks,
    .publish =
        [](ModelConfig& config) {
          publish_rotary(config);
          config.norm_eps = 1e-6;
          config.latent = {.kv_rank = 512, .query_rank = 1536};
          config.experts = {.experts = 256,
                            .chosen = 8,
                            .score = RouterScore::Sigmoid,
                            .scale = 2.5,
                            .groups = 8,
                            .chosen_groups = 4,
                            .bias = true};
        },
    .complete =
        [](ModelConfig& config) {
          complete_rotary(config);
          if (config.latent.kv_rank == 0 && config.latent.plain_width > 0 &&
              size_product_fits(4, config.latent.plain_width))
            config.latent.kv_rank = 4 * config.latent.plain_width;
          if (config.experts.experts > 0 && config.experts.shared_width == 0 &&
              config.hidden_of_experts() > 0)
            config.experts.shared_width = config.hidden_of_experts();
        },
    .find_problems = find_deepseek_v3_problems,
    .layer = rotary_layer(),
};

}  // namespace tessera
