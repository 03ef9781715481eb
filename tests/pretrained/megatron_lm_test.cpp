/// Folders with Megatron-LM's own names: tests/golden/families has them as its first versions and
/// Megatron-core name tensors; here are other versions, and what is refused.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "files/test_data.h"
#include "repo_file.h"
#include "tessera/base/text.h"
#include "tessera/files/safetensors.h"
#include "tessera/pretrained/hub/hub_config.h"
#include "tessera/pretrained/pretrained_model.h"

namespace tessera {
namespace {

using MegatronTensors = std::map<std::string, HostTensor>;

std::string megatron_golden(const std::string& name) {
  return repo_file(text("tests/golden/families/megatron_lm_", name));
}

MegatronTensors megatron_tensors(const std::string& name) {
  const SafetensorsFile file(megatron_golden(name) + "/model.safetensors");
  MegatronTensors out;
  for (const StoredTensor& tensor : file.tensors())
    out.emplace(tensor.name, file.load(tensor.name));
  return out;
}

HubJson megatron_keys(const std::string& name) {
  return HubJson::parse(read_file(megatron_golden(name) + "/config.json"));
}

/// What the folder gives: each parameter, or the refusal.
struct MegatronFolder {
  std::string refusal;
  std::map<std::string, std::vector<float>> values;
  std::vector<std::string> notices;
  bool operator==(const MegatronFolder&) const = default;
};

MegatronFolder opened(const HubJson& keys, const MegatronTensors& tensors) {
  const TestFolder folder;
  std::ofstream(folder / "config.json") << keys.dump();
  std::vector<TensorSource> sources;
  for (const auto& [name, tensor] : tensors)
    sources.push_back(TensorSource::of(name, tensor.type(), tensor.bytes()));
  write_safetensors(folder / "model.safetensors", std::move(sources), {});
  MegatronFolder out;
  out.refusal = message_of([&] {
    const PretrainedModel model = PretrainedModel::open(folder.path());
    out.notices = model.notices();
    for (const auto& [name, shape] : model.parameters()) {
      std::vector<float>& values = out.values[name];
      values.resize(static_cast<std::size_t>(shape.numel()));
      read_whole(model, name, std::as_writable_bytes(std::span(values)));
    }
  });
  return out;
}

/// Every name with parts of it changed, one after another.
MegatronTensors renamed(const MegatronTensors& tensors,
                        const std::vector<std::pair<std::string, std::string>>& changes) {
  MegatronTensors out;
  for (const auto& [name, tensor] : tensors) {
    std::string changed = name;
    for (const auto& [from, to] : changes) {
      if (const std::size_t at = changed.find(from); at != std::string::npos)
        changed.replace(at, from.size(), to);
    }
    out.emplace(changed, tensor);
  }
  return out;
}

TEST(MegatronLm, NamesOfEveryVersionAreOneModel) {
  struct Case {
    const char *why, *golden;
    std::vector<std::pair<std::string, std::string>> changes;
  };
  const Case cases[] = {
      {"version 1", "gpt", {{"encoder.", "transformer."}, {"self_attention.", "attention."}}},
      {"a later legacy one",
       "gpt",
       {{"input_layernorm", "input_norm"},
        {"post_attention_layernorm", "post_attention_norm"},
        {"final_layernorm", "final_norm"}}},
      {"Megatron-core without Transformer Engine",
       "gpt_core",
       {{"self_attention.linear_qkv.layer_norm_", "input_layernorm."},
        {"mlp.linear_fc1.layer_norm_", "pre_mlp_layernorm."}}},
      {"with a wrapper",
       "gpt_core",
       {{"decoder.", "module.decoder."}, {"embedd", "module.embedd"}}},
      {"a BERT", "bert", {{"lm_head.layernorm", "lm_head.norm"}}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.why);
    const MegatronFolder wanted = opened(megatron_keys(c.golden), megatron_tensors(c.golden));
    EXPECT_EQ(wanted.refusal, "");
    const MegatronFolder found =
        opened(megatron_keys(c.golden), renamed(megatron_tensors(c.golden), c.changes));
    EXPECT_TRUE(found == wanted) << found.refusal << join(found.notices);
  }
}

TEST(MegatronLm, TensorsThatNothingReadsAreRefused) {
  const auto with = [](const std::string& name, const HostTensor& tensor) {
    MegatronTensors tensors = megatron_tensors("gpt");
    tensors.insert_or_assign(name, tensor);
    return opened(megatron_keys("gpt"), tensors);
  };
  const MegatronFolder usual = opened(megatron_keys("gpt"), megatron_tensors("gpt"));
  const std::string table = "language_model.embedding.word_embeddings.weight";
  HostTensor copy = megatron_tensors("gpt").at(table);
  EXPECT_TRUE(with("word_embeddings_for_head.weight", copy) == usual);
  EXPECT_TRUE(with("language_model.encoder.layers.0.mlp._extra_state",
                   HostTensor(DType::I32, {3})) == usual);
  copy.set(5, 9);
  struct Case {
    std::string name, said;
  };
  const Case cases[] = {
      {"word_embeddings_for_head.weight", "differs from"},
      {"language_model.encoder.layers.0.self_attention.q_layernorm.weight",
       "1 tensors that a model of megatron-lm-gpt has not"},
      {"language_model.encoder.layers.2.input_layernorm.weight", "has not"},
      {"language_model.encoder.layers.0.input_norm.weight", "which name the same one"},
  };
  for (const Case& c : cases) {
    const MegatronFolder found = with(c.name, copy);
    EXPECT_NE(found.refusal.find(c.name), std::string::npos) << found.refusal;
    EXPECT_NE(found.refusal.find(c.said), std::string::npos) << found.refusal;
  }
}

TEST(MegatronLm, CheckpointsAreRefusedByWhatConvertsThem) {
  for (const char* name : {"mp_rank_00", "mp_rank_00_000", "iter_0000100/mp_rank_01",
                           "release/mp_rank_00", "iter_0000100/__0_0.distcp"}) {
    const TestFolder folder;
    std::filesystem::create_directories(folder / name);
    const std::string refusal = message_of([&] { PretrainedModel::refuse_other(folder.path()); });
    EXPECT_NE(refusal.find("tools/convert_megatron.py"), std::string::npos) << refusal;
  }
  const TestFolder ours;  // it has the tracker too
  std::ofstream(ours / "latest_checkpointed_iteration.txt") << "100";
  std::filesystem::create_directories(ours / "iter_0000100/data");
  EXPECT_NO_THROW(PretrainedModel::refuse_other(ours.path()));
}

TEST(MegatronLm, ArgumentsThatAreNotComputedAreRefused) {
  struct Case {
    const char *golden, *key, *value;
  };
  const Case cases[] = {
      {"gpt", "checkpoint_version", "1.0"},
      {"gpt", "checkpoint_version", "4"},
      {"gpt", "bias_gelu_fusion", "false"},
      {"gpt", "kv_channels", "8"},
      {"gpt", "normalization", "\"RMSNorm\""},
      {"gpt", "position_embedding_type", "\"rope\""},
      {"gpt", "swiglu", "true"},
      {"gpt", "add_bias_linear", "false"},
      {"gpt", "apply_layernorm_1p", "true"},
      {"gpt", "apply_residual_connection_post_layernorm", "true"},
      {"gpt", "multi_latent_attention", "true"},
      {"gpt", "qk_layernorm", "true"},
      {"gpt", "squared_relu", "true"},
      {"gpt", "window_size", "[8, 0]"},
      {"gpt", "softmax_type", R"("off-by-one")"},
      {"gpt", "quick_geglu", "true"},
      {"gpt", "embedding_multiplier", "2.0"},
      {"gpt", "use_rotary_position_embeddings", "true"},
      {"bert", "hybrid_override_pattern", R"("M*M*")"},
      {"gpt", "num_experts", "8"},
      {"bert", "bert_binary_head", "false"},
      {"bert", "openai_gelu", "true"},
      {"bert", "group_query_attention", "true"},
      {"bert", "untie_embeddings_and_output_weights", "true"},
      {"llama", "normalization", "\"LayerNorm\""},
      {"llama", "position_embedding_type", "\"learned_absolute\""},
      {"llama", "swiglu", "false"},
      {"llama", "add_bias_linear", "true"},
      {"llama", "add_qkv_bias", "true"},
      {"llama", "rotary_percent", "0.5"},
      {"llama", "rotary_interleaved", "true"},
      {"llama", "use_rope_scaling", "true"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(text(c.golden, " ", c.key, " ", c.value));
    HubJson keys = megatron_keys(c.golden);
    keys[c.key] = HubJson::parse(c.value);
    const MegatronFolder found = opened(keys, megatron_tensors(c.golden));
    EXPECT_NE(found.refusal.find(text(c.key, " is ")), std::string::npos) << found.refusal;
  }
  // And those that the script refuses, before it converts anything.
  const std::string script = read_file(repo_file("tools/convert_megatron.py"));
  const std::size_t begin = script.find("OFF = \"\"\"") + 9;
  std::istringstream names(script.substr(begin, script.find("\"\"\"", begin) - begin));
  int count = 0;
  for (std::string name; names >> name; ++count) {
    HubJson keys = megatron_keys("llama");
    keys[name] = true;
    const MegatronFolder found = opened(keys, megatron_tensors("llama"));
    EXPECT_NE(found.refusal.find(text(name, " is ")), std::string::npos) << name << found.refusal;
  }
  EXPECT_GT(count, 15);
  HubJson keys = megatron_keys("gpt");
  keys["bias_gelu_fusion"] = false;
  keys["openai_gelu"] = true;
  EXPECT_EQ(opened(keys, megatron_tensors("gpt")).refusal, "") << "GELU by tanh, too";
  keys.erase("checkpoint_version");
  EXPECT_NE(opened(keys, megatron_tensors("gpt")).refusal.find("checkpoint_version"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
