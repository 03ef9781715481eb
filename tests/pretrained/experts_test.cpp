/// Folders of models with experts: what transformers makes of their keys, and what it has no keys for.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "files/test_data.h"
#include "tessera/files/safetensors.h"
#include "tessera/models/parameter_shapes.h"
#include "tessera/pretrained/hub/hub_family.h"
#include "tessera/pretrained/pretrained_model.h"
#include "tessera/pretrained/save_pretrained.h"

namespace tessera {
namespace {

std::string refusal_of_keys(const char* family, const std::string& json) {
  return message_of([&] {
    read_hub_model(*hub_family_of(family), HubConfig(json, "config.json"), TaskGiven::No);
  });
}

ModelConfig read(const char* family, const std::string& json) {
  return read_hub_model(*hub_family_of(family), HubConfig(json, "config.json"), TaskGiven::No)
      .config;
}

/// By the rules of transformers 5.24, which are other ones than those of Qwen2.
TEST(HubExperts, Windows) {
  using Windows = std::pair<std::int64_t, std::int64_t>;
  const auto windows = [](const char* family, const std::string& rest) {
    const std::string json =
        R"({"num_hidden_layers": 4, "use_sliding_window": true, "sliding_window": 9)" + rest + "}";
    const ModelConfig c = read(family, json);
    return Windows(c.window, c.global_every);
  };
  EXPECT_EQ(windows("qwen2_moe", ""), Windows(9, 2));
  EXPECT_EQ(windows("qwen2_moe", R"(, "max_window_layers": 4)"), Windows(9, 2));
  EXPECT_EQ(windows("qwen2_moe", R"(, "max_window_layers": 0)"), Windows(0, 0));
  EXPECT_THROW(windows("qwen2_moe", R"(, "max_window_layers": 2)"), Error);
  EXPECT_EQ(windows("qwen3_moe", ""), Windows(9, 0));
  EXPECT_EQ(windows("qwen3_moe", R"(, "max_window_layers": 0)"), Windows(9, 0));
  EXPECT_THROW(windows("qwen3_moe", R"(, "max_window_layers": 4)"), Error);
  const std::string all = R"(, "layer_types": ["sliding_attention", "sliding_attention",
      "sliding_attention", "sliding_attention"])",
                    some = R"(, "layer_types": ["sliding_attention", "full_attention",
      "sliding_attention", "full_attention"])";
  EXPECT_EQ(windows("qwen2_moe", all), Windows(9, 0));
  EXPECT_EQ(windows("qwen2_moe", some), Windows(9, 2));
  EXPECT_EQ(windows("qwen3_moe", all), Windows(9, 0));
  EXPECT_THROW(windows("qwen3_moe", some), Error);
}

TEST(HubExperts, LayersWithoutThem) {
  const auto layers = [](const std::string& rest) {
    return read("qwen3_moe", R"({"num_hidden_layers": 6)" + rest + "}").expert_layers;
  };
  EXPECT_EQ(layers(""), "1");
  EXPECT_EQ(layers(R"(, "mlp_only_layers": [])"), "1");
  EXPECT_EQ(layers(R"(, "mlp_only_layers": [0])"), "[0]+[1]*5");
  EXPECT_EQ(layers(R"(, "decoder_sparse_step": 2)"), "[0]+[1]+[0]+[1]+[0]+[1]");
  EXPECT_EQ(layers(R"(, "decoder_sparse_step": 3, "mlp_only_layers": [2])"), "[0]*5+[1]");
  const auto refusal = [](const std::string& rest) {
    return refusal_of_keys("qwen3_moe", R"({"num_hidden_layers": 6)" + rest + "}");
  };
  for (const char* list : {"[6]", "[-1]", "[1.5]", R"("0")", "[null]"}) {
    const std::string message = refusal(text(R"(, "mlp_only_layers": )", list));
    EXPECT_NE(message.find("mlp_only_layers is "), std::string::npos) << message;
  }
  const std::string none = refusal(R"(, "decoder_sparse_step": 7)");
  EXPECT_NE(none.find("decoder_sparse_step 7 and mlp_only_layers leave no layer with experts"),
            std::string::npos)
      << none;
  EXPECT_EQ(read("deepseek_v3", "{}").expert_layers, "[0]*3+[1]*58");
  EXPECT_EQ(read("deepseek_v3", R"({"first_k_dense_replace": 0})").expert_layers, "1");
}

TEST(HubExperts, OtherRoutersThanDeepseekV3sAreRefused) {
  const auto refuses = [](const std::string& json, const std::string& said) {
    const std::string message = refusal_of_keys("deepseek_v3", json);
    EXPECT_NE(message.find(said), std::string::npos) << message;
  };
  refuses(R"({"scoring_func": "softmax"})", "scoring_func is \"softmax\"");
  refuses(R"({"topk_method": "greedy"})", "topk_method is \"greedy\"");
  refuses(R"({"moe_layer_freq": 2})", "moe_layer_freq is 2");
  refuses(R"({"rope_interleave": false})", "rope_interleave is false");
  refuses(R"({"num_key_value_heads": 8})", "num_key_value_heads is 8, and num_attention_heads 128");
  refuses(R"({"num_attention_heads": 8})", "num_key_value_heads is 128, as the file lacks it");
  refuses(R"({"topk_group": 2})", "num_experts_per_tok must be twice topk_group");
  refuses(R"({"n_routed_experts": 4})", "num_experts_per_tok is 8 and n_routed_experts 4");
  refuses(R"({"n_routed_experts": 9})", "n_group is 8");
  refuses(R"({"first_k_dense_replace": 61})", "so that none has experts");
  EXPECT_EQ(read("deepseek_v3", R"({"n_group": 8, "topk_group": 8})").experts.groups, 0);
  EXPECT_EQ(read("deepseek_v3", R"({"q_lora_rank": null})").latent.query_rank, 0);
}

TEST(HubExperts, TwoNumbersOfExpertsAreRefused) {
  EXPECT_EQ(refusal_of_keys("qwen3_moe", R"({"num_experts": 16, "num_local_experts": 16})"), "");
  const std::string message =
      refusal_of_keys("qwen3_moe", R"({"num_experts": 16, "num_local_experts": 8})");
  EXPECT_NE(message.find("num_experts is 16; it is another name of num_local_experts, which is 8"),
            std::string::npos)
      << message;
}

/// As transformers writes them where it is told not to part them.
TEST(HubExperts, JoinedOnesAreTold) {
  const TestFolder folder;
  const std::string golden = repo_file("tests/golden/families/mixtral");
  std::filesystem::copy_file(golden + "/config.json", folder / "config.json");
  const SafetensorsFile file(golden + "/model.safetensors");
  std::vector<std::pair<std::string, HostTensor>> tensors;
  for (const StoredTensor& tensor : file.tensors()) {
    if (tensor.name.find(".experts.") == std::string::npos)
      tensors.emplace_back(tensor.name, file.load(tensor.name));
  }
  tensors.emplace_back("model.layers.0.mlp.experts.gate_up_proj",
                       HostTensor({DType::F32, {4, 20, 16}, {}}));
  std::vector<TensorSource> sources;
  for (const auto& [name, tensor] : tensors)
    sources.push_back(TensorSource::of(name, tensor.type(), tensor.bytes()));
  write_safetensors(folder / "model.safetensors", std::move(sources), {});
  const std::string message = message_of([&] { PretrainedModel::open(folder / ""); });
  EXPECT_NE(message.find("its experts are joined (gate_up_proj)"), std::string::npos) << message;
}

/// A folder without them would be another model.
TEST(HubExperts, WhatTransformersHasNoKeysForIsNotWritten) {
  const auto refusal = [](const char* family, auto change) {
    const TestFolder folder;
    ModelConfig model = read(family, "{}");
    model.layers = 4, model.width = 8, model.heads = 2, model.kv_heads = 2, model.ffn_width = 4;
    model.vocabulary = 5, model.context = 4, model.head_width = 0;
    model.experts.experts = 3, model.experts.chosen = 2;
    model.experts.groups = model.experts.chosen_groups = model.experts.width = 0;
    if (model.experts.shared_width > 0) model.experts.shared_width = 4;
    model.expert_layers = "1";
    change(model);
    model = with_derived(model);
    const auto shapes = parameter_shapes(model);
    const ParameterReader zeros{
        [&](std::string_view name) {
          const auto found = shapes.find(name);
          return found == shapes.end() ? nullptr : &found->second;
        },
        [](std::string_view, std::span<float> out) { std::ranges::fill(out, 0.0F); }};
    return message_of([&] { save_pretrained(folder / "out", model, zeros, {}); });
  };
  const auto nothing = [](ModelConfig&) {};
  const auto shared = [](ModelConfig& c) {
    c.experts.shared_width = 4, c.experts.shared_gate = true;
  };
  EXPECT_EQ(refusal("mixtral", nothing), "");
  EXPECT_EQ(refusal("qwen2_moe", nothing), "");
  EXPECT_EQ(refusal("qwen3_moe", nothing), "");
  for (const char* family : {"mixtral", "qwen3_moe"})
    EXPECT_NE(refusal(family, shared).find("has no expert that all tokens read"),
              std::string::npos);
  EXPECT_NE(refusal("qwen2_moe", [](ModelConfig& c) { c.experts.shared_gate = false; })
                .find("has a shared expert with a gate"),
            std::string::npos);
  for (const char* family : {"mixtral", "qwen2_moe", "qwen3_moe"})
    EXPECT_NE(refusal(family, [](ModelConfig& c) { c.experts.experts = 0; }).find("num-experts 0"),
              std::string::npos);
  const auto every_second = [](ModelConfig& c) { c.expert_layers = "2"; };
  EXPECT_EQ(refusal("qwen3_moe", every_second), "");
  EXPECT_NE(refusal("mixtral", every_second).find("has moe-layer-freq"), std::string::npos);
  EXPECT_EQ(refusal("deepseek_v3", nothing), "");
  EXPECT_EQ(refusal("deepseek_v3", [](ModelConfig& c) { c.expert_layers = "[0]+[1]*3"; }), "");
  EXPECT_NE(refusal("deepseek_v3", every_second).find("layer 1 has none (moe-layer-freq 2)"),
            std::string::npos);
  EXPECT_NE(refusal("deepseek_v3", [](ModelConfig& c) { c.experts.shared_width = 6; })
                .find("as wide as 4 or several of that"),
            std::string::npos);
  EXPECT_NE(refusal("deepseek_v3", [](ModelConfig& c) { c.experts.bias = false; })
                .find("moe-router-enable-expert-bias"),
            std::string::npos);
  EXPECT_NE(refusal("qwen3_moe", [](ModelConfig& c) { c.window = 3, c.global_every = 2; })
                .find("global-every"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
