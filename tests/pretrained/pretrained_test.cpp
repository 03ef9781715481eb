/// Models in Hugging Face's folders: tests/golden/hub has them as transformers saves them, and
/// tests/golden/FAMILY.safetensors the same weights in our layout, packed by tools/golden.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>

#include "files/test_data.h"
#include "repo_file.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/files/safetensors.h"
#include "tessera/models/parameter_shapes.h"
#include "tessera/pretrained/hub/hub_family.h"
#include "tessera/pretrained/hub/hub_labels.h"
#include "tessera/pretrained/pretrained_model.h"
#include "tessera/pretrained/save_pretrained.h"
#include "tessera/tensor/shard_copy.h"
#include "tessera/tensor/sixteen_bit.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

using Tensors = std::map<std::string, HostTensor>;

Tensors tensors_of(const std::string& path) {
  const SafetensorsFile file(path);
  Tensors out;
  for (const StoredTensor& tensor : file.tensors())
    out.emplace(tensor.name, file.load(tensor.name));
  return out;
}

/// Parameters that are all there, by name and shape.
ParameterReader reader_of(const Tensors& tensors) {
  return {[&](std::string_view name) {
            const auto found = tensors.find(std::string(name));
            return found == tensors.end() ? nullptr : &found->second.shape();
          },
          [&](std::string_view name, std::span<float> out) {
            std::memcpy(out.data(), tensors.at(std::string(name)).bytes().data(), out.size_bytes());
          }};
}

std::string hub_folder(const std::string& family) {
  return repo_file(text("tests/golden/hub/", family));
}

/// The parameters in our layout, by an independent packing.
Tensors golden(const std::string& family) {
  Tensors out;
  for (auto& [name, tensor] :
       tensors_of(repo_file(text("tests/golden/", family, ".safetensors")))) {
    if (starts_with(name, "param.")) out.emplace(name.substr(6), std::move(tensor));
  }
  return out;
}

std::vector<float> whole(const PretrainedModel& model, std::string_view parameter) {
  std::vector<float> out(
      static_cast<std::size_t>(model.parameters().find(parameter)->second.numel()));
  read_whole(model, parameter, std::as_writable_bytes(std::span(out)));
  return out;
}

void expect_parameters(const PretrainedModel& model, const Tensors& wanted) {
  EXPECT_EQ(model.parameters().size(), wanted.size());
  for (const auto& [name, tensor] : wanted) {
    ASSERT_TRUE(model.parameters().contains(name)) << name;
    EXPECT_EQ(model.parameters().at(name), tensor.shape()) << name;
    const std::vector<float> found = whole(model, name);
    EXPECT_EQ(std::memcmp(found.data(), tensor.bytes().data(), tensor.bytes().size()), 0) << name;
  }
}

/// The folder of a family without its weights, where generate()'s file says that.
std::string notices_of_writing(const std::string& family, const std::string& generation) {
  const TestFolder at;
  fs::copy_file(hub_folder(family) + "/config.json", at / "config.json");
  write_atomically(at / "generation_config.json", generation);
  return join(PretrainedModel::open(at.path(), {.weights = OpenPretrained::Weights::None})
                  .notices_of_writing(),
              "; ");
}

TEST(Hub, WhatShapesTextsAndIsNotReadIsTold) {
  const std::string none = R"({"num_beams": 1, "do_sample": false, "max_length": null,
                               "eos_token_id": 2, "transformers_version": "5.0"})";
  EXPECT_EQ(notices_of_writing("t5", none), "");
  EXPECT_NE(notices_of_writing("t5", R"({"num_beams": 4, "max_length": 20, "min_length": 0})")
                .find("generation_config.json: not read here: num_beams, max_length; "),
            std::string::npos);
  EXPECT_NE(notices_of_writing("bart", none).find("has no forced_bos_token_id, and transformers"),
            std::string::npos);
  EXPECT_EQ(notices_of_writing("gpt2", R"({"num_beams": 4})"), "") << "tessera sample says how";
}

void write(const std::string& path, const Tensors& tensors) {
  std::vector<TensorSource> sources;
  for (const auto& [name, tensor] : tensors)
    sources.push_back(TensorSource::of(name, tensor.type(), tensor.bytes()));
  write_safetensors(path, std::move(sources), {{"format", "pt"}});
}

/// A copy of a golden folder whose weights are others.
std::string folder_with(const TestFolder& folder, const std::string& family,
                        const Tensors& weights) {
  fs::copy_file(hub_folder(family) + "/config.json", folder / "config.json",
                fs::copy_options::overwrite_existing);
  write(folder / "model.safetensors", weights);
  return folder / "";
}

Tensors hub_tensors_of(const std::string& family) {
  return tensors_of(hub_folder(family) + "/model.safetensors");
}

/// "t5" of "t5_v1_1".
std::string family_of(const std::string& folder) { return folder.substr(0, folder.find('_')); }

class Hub : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Families, Hub,
                         testing::Values("gpt2", "llama", "bert", "roberta", "albert", "t5",
                                         "t5_v1_1", "bart", "vit", "bert_classes",
                                         "roberta_classes", "albert_classes", "gpt2_classes",
                                         "llama_classes", "bert_tags", "roberta_tags",
                                         "albert_tags", "bert_spans", "roberta_spans",
                                         "albert_spans", "bert_masked", "albert_masked"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Hub, IsReadAsOurParameters) {
  const PretrainedModel model = PretrainedModel::open(hub_folder(GetParam()));
  expect_parameters(model, golden(GetParam()));
  EXPECT_TRUE(model.notices().empty()) << join(model.notices());
  const ModelConfig& c = model.config();
  EXPECT_EQ(c.family.name(), family_of(GetParam()));
  EXPECT_EQ(c.layers, 2);
  EXPECT_EQ(c.heads, 4);
  EXPECT_EQ(c.width, 32);
  const bool pictures = c.family.name() == std::string_view("vit");
  EXPECT_EQ(c.vocabulary, pictures ? 1 : 61);
  EXPECT_EQ(c.context, pictures ? 10 : 16);
  EXPECT_EQ(c.dropout, 0);
}

TEST_P(Hub, IsWrittenAsItWasRead) {
  const TestFolder folder;
  const Tensors ours = golden(GetParam());
  const PretrainedModel model = PretrainedModel::open(hub_folder(GetParam()));
  const ParameterReader reader = reader_of(ours);
  const Tensors wanted = hub_tensors_of(GetParam());
  for (const std::int64_t most : {std::int64_t{1} << 40, std::int64_t{20'000}}) {
    const std::string out = folder / text("out-", most);
    save_pretrained(out, model.config(), reader, {.most_file_bytes = most, .config = model.json()});
    const PretrainedModel again = PretrainedModel::open(out);
    expect_parameters(again, ours);
    EXPECT_EQ(again.config(), model.config());
    // Keys that are none of ours stay as they were.
    const HubConfig config(read_file(out + "/config.json"), out), before(model.json(), "");
    EXPECT_EQ(config.json()["transformers_version"], before.json()["transformers_version"]);
    if (most > 20'000) {
      const Tensors found = tensors_of(out + "/model.safetensors");
      ASSERT_EQ(found.size(), wanted.size());
      for (const auto& [name, tensor] : wanted) {
        ASSERT_TRUE(found.contains(name)) << name;
        EXPECT_EQ(found.at(name).type(), tensor.type()) << name;
        EXPECT_TRUE(std::ranges::equal(found.at(name).bytes(), tensor.bytes())) << name;
      }
    } else {
      EXPECT_FALSE(fs::exists(out + "/model.safetensors"));
      EXPECT_GT(std::distance(fs::directory_iterator(out), fs::directory_iterator()), 4);
    }
  }
  const std::string there =
      message_of([&] { save_pretrained(folder / "out-20000", model.config(), reader); });
  EXPECT_NE(there.find("--overwrite"), std::string::npos) << there;
  // All of the earlier export goes, its tokenizer too, and nothing else.
  const std::vector<std::string> gone = {"spiece.model", "added_tokens.json",
                                         "generation_config.json",
                                         "model.safetensors.partial-17-0"},
                                 stays = {"README.md", "model-best.safetensors", "onnx/model.onnx"};
  for (const auto* files : {&gone, &stays}) {
    for (const std::string& name : *files) {
      const fs::path path = fs::path(folder / "out-20000") / name;
      fs::create_directories(path.parent_path());
      write_atomically(path.string(), name);
    }
  }
  save_pretrained(folder / "out-20000", model.config(), reader, {.overwrite = true});
  EXPECT_FALSE(fs::exists(folder / "out-20000/model.safetensors.index.json"));
  EXPECT_FALSE(fs::exists(folder / "out-20000/model-00001-of-00002.safetensors"));
  for (const std::string& name : gone)
    EXPECT_FALSE(fs::exists(fs::path(folder / "out-20000") / name)) << name;
  for (const std::string& name : stays)
    EXPECT_EQ(read_file((fs::path(folder / "out-20000") / name).string()), name);
  expect_parameters(PretrainedModel::open(folder / "out-20000"), ours);
}

TEST_P(Hub, SixteenBitsAreWidened) {
  const TestFolder folder;
  for (const DType dtype : {DType::BF16, DType::F16}) {
    Tensors weights, wanted = golden(GetParam());
    const bool bf16 = dtype == DType::BF16;
    const auto narrow = [&](float x) { return bf16 ? to_bf16(x) : to_f16(x); };
    const auto wide = [&](std::uint16_t x) { return bf16 ? from_bf16(x) : from_f16(x); };
    for (const auto& [name, tensor] : hub_tensors_of(GetParam())) {
      HostTensor half(dtype, tensor.shape());
      auto* bits = reinterpret_cast<std::uint16_t*>(half.bytes().data());
      for (std::int64_t i = 0; i < tensor.numel(); ++i) bits[i] = narrow(tensor.data<float>()[i]);
      weights.emplace(name, std::move(half));
    }
    for (auto& [name, tensor] : wanted) {
      for (std::int64_t i = 0; i < tensor.numel(); ++i)
        tensor.data<float>()[i] = wide(narrow(tensor.data<float>()[i]));
    }
    expect_parameters(PretrainedModel::open(folder_with(folder, GetParam(), weights)), wanted);
  }
}

/// What is computed and compared with the file, such as sines of positions, is rounded there too.
TEST(HubFolders, OfSixteenBitsAreReadAsTheyWereWritten) {
  for (const auto& entry : fs::directory_iterator(repo_file("tests/golden/families"))) {
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    const PretrainedModel model = PretrainedModel::open(entry.path().string());
    Tensors ours;
    for (const auto& [parameter, shape] : model.parameters()) {
      HostTensor& tensor = ours[parameter] = HostTensor(DType::F32, shape);
      std::ranges::copy(whole(model, parameter), tensor.data<float>());
    }
    if (fs::exists(entry.path() / "flags.txt")) continue;  // it is exported by no folder's means
    if (starts_with(name, "megatron_lm_")) continue;       // nor these
    for (const DType dtype : {DType::BF16, DType::F16}) {
      const TestFolder folder;
      save_pretrained(folder / "out", model.config(), reader_of(ours),
                      {.dtype = dtype, .config = model.json()});
      const PretrainedModel again = PretrainedModel::open(folder / "out");
      const double rounding = dtype == DType::BF16 ? 1.0 / 256 : 1.0 / 2048;
      for (const auto& [parameter, tensor] : ours) {
        const std::vector<float> found = whole(again, parameter);
        for (std::size_t i = 0; i < found.size(); ++i) {
          const double wanted = tensor.data<float>()[i];
          ASSERT_NEAR(found[i], wanted, rounding * std::abs(wanted) + 1e-7) << parameter;
        }
      }
    }
  }
}

/// Those whose names begin with that of the family.
class HubPrefix : public Hub {};
INSTANTIATE_TEST_SUITE_P(Families, HubPrefix,
                         testing::Values("gpt2", "llama", "bert", "roberta", "albert", "bart",
                                         "vit", "bert_classes", "roberta_classes", "albert_classes",
                                         "gpt2_classes", "llama_classes", "bert_tags",
                                         "roberta_tags", "albert_tags", "bert_spans",
                                         "roberta_spans", "albert_spans", "bert_masked",
                                         "albert_masked"),
                         [](const auto& info) { return std::string(info.param); });

/// A model without heads has names without the prefix, and lacks the heads; its class says so.
TEST_P(HubPrefix, MayBeMissing) {
  const TestFolder folder;
  Tensors weights;
  const HubFamily& family = *hub_family_of(FamilyRef(family_of(GetParam())));
  const std::string prefix(family.prefix);
  ASSERT_NE(prefix, "");
  std::size_t heads = 0;
  for (auto& [name, tensor] : hub_tensors_of(GetParam())) {
    if (starts_with(name, prefix)) {
      weights.emplace(name.substr(prefix.size()), std::move(tensor));
    } else if (std::ranges::find(family.constants, name, &HubConstant::name) ==
               family.constants.end()) {
      ++heads;
    }
  }
  const std::string path = folder_with(folder, GetParam(), weights);
  if (heads > 0) {
    const std::string message = message_of([&] { PretrainedModel::open(path); });
    EXPECT_NE(message.find(text("lacks ", heads, " of the tensors")), std::string::npos) << message;
  }
  HubJson config = HubJson::parse(read_file(path + "config.json"));
  config["architectures"] = {std::string(family.base_class)};
  write_atomically(path + "config.json", config.dump());
  const PretrainedModel model = PretrainedModel::open(path);
  Tensors wanted = golden(GetParam());
  std::erase_if(wanted, [](const auto& each) {
    return starts_with(each.first, "head.") || starts_with(each.first, "mlm.") ||
           starts_with(each.first, "nsp.") || starts_with(each.first, "sop.") ||
           starts_with(each.first, "classifier.") || starts_with(each.first, "score.") ||
           starts_with(each.first, "qa_outputs.");
  });
  expect_parameters(model, wanted);
  EXPECT_EQ(heads > 0, golden(GetParam()).size() > wanted.size());
}

TEST_P(Hub, ShardsAreCutFromTheWhole) {
  const PretrainedModel model = PretrainedModel::open(hub_folder(GetParam()));
  const Mesh mesh({{"a", 2}, {"b", 3}});
  for (const auto& [name, shape] : model.parameters()) {
    const std::vector<float> all = whole(model, name);
    for (const char* dims : {"a", "b", "a,b"}) {
      for (int dim = 0; dim < shape.ndim(); ++dim) {
        const std::vector<std::string> axes = split(dims, ',');
        if (static_cast<int>(axes.size()) > shape.ndim()) continue;
        std::vector<std::string> words(static_cast<std::size_t>(shape.ndim()), "-");
        for (std::size_t i = 0; i < axes.size(); ++i)
          words[(static_cast<std::size_t>(dim) + i) % words.size()] = axes[i];
        const Sharding sharding = parse_sharding(text("[", join(words, ","), "]"));
        for (int rank = 0; rank < mesh.ranks(); ++rank) {
          const Coordinates at = coordinates_of(mesh, rank);
          const auto elements =
              static_cast<std::size_t>(local_shape(shape, sharding, mesh).numel());
          std::vector<float> wanted(elements, 1), found(elements, 2);
          cut_shard(std::as_bytes(std::span(all)), shape, DType::F32, sharding, mesh, at,
                    std::as_writable_bytes(std::span(wanted)));
          read_shard(model, name, sharding, mesh, at, std::as_writable_bytes(std::span(found)));
          EXPECT_EQ(wanted, found) << name << " " << to_text(sharding) << " rank " << rank;
        }
      }
    }
  }
}

TEST_P(Hub, WithoutWeightsItIsRefusedUnlessItsConfigIsWhatIsWanted) {
  const TestFolder folder;
  fs::copy_file(hub_folder(GetParam()) + "/config.json", folder / "config.json");
  const std::string message = message_of([&] { PretrainedModel::open(folder / ""); });
  EXPECT_NE(message.find("no weights (model.safetensors); download them"), std::string::npos);
  EXPECT_EQ(message.find("--"), std::string::npos) << "flags are the caller's: " << message;
  for (const auto weights : {OpenPretrained::Weights::IfThere, OpenPretrained::Weights::None}) {
    const PretrainedModel model = PretrainedModel::open(folder / "", {.weights = weights});
    EXPECT_TRUE(model.parameters().empty());
    EXPECT_TRUE(model.notices().empty());
  }
}

TEST(HubBert, FirstFilesCallNormsOtherwise) {
  const TestFolder folder;
  Tensors weights;
  for (auto& [name, tensor] : hub_tensors_of("bert")) {
    std::string old = name;
    if (const std::size_t at = old.find("LayerNorm.weight"); at != std::string::npos)
      old.replace(at, 16, "LayerNorm.gamma");
    if (const std::size_t at = old.find("LayerNorm.bias"); at != std::string::npos)
      old.replace(at, 14, "LayerNorm.beta");
    weights.emplace(old, std::move(tensor));
  }
  expect_parameters(PretrainedModel::open(folder_with(folder, "bert", weights)), golden("bert"));
}

/// Models that were published, with as many parameters as were published.
TEST(HubConfigs, OfPublishedModelsHaveTheirParameters) {
  const HubJson models = HubJson::parse(read_file(repo_file("tests/golden/published.json")));
  for (const auto& [name, model] : models.items()) {
    SCOPED_TRACE(name);
    const HubConfig config(model["config"].dump(), "config.json");
    const HubModel read = read_hub_model(hub_family_of(config), config, TaskGiven::No);
    std::int64_t parameters = 0;
    for (const auto& [parameter, shape] : parameter_shapes(read.config))
      parameters += shape.numel();
    EXPECT_EQ(parameters, model["parameters"].get<std::int64_t>());
  }
  EXPECT_GT(models.size(), 10u);
}

/// Both spellings of rotary positions.
TEST(HubLlama, BaseOfPositions) {
  const auto base = [](const std::string& json) {
    const HubConfig config(json, "config.json");
    return read_hub_model(*hub_family_of("llama"), config, TaskGiven::No).config.rope_base;
  };
  EXPECT_EQ(base("{}"), 10'000);
  EXPECT_EQ(base(R"({"rope_theta": 500000.0, "rope_scaling": null})"), 500'000);
  EXPECT_EQ(base(R"({"rope_parameters": {"rope_theta": 2e6, "rope_type": "default"}})"), 2'000'000);
  EXPECT_EQ(base(R"({"rope_theta": 5e5, "rope_scaling": {"rope_type": "default"}})"), 500'000);
}

/// What transformers reads otherwise than it stands there.
TEST(HubFamilies, ReadsKeysAsTransformersDoes) {
  const auto read = [](const char* type, const std::string& keys) {
    const HubConfig config("{" + keys + "}", "c");
    return read_hub_model(*hub_family_of(type), config, TaskGiven::No).config;
  };
  const char* const published = R"("hidden_act": "gelu", "hidden_activation": null)";
  EXPECT_EQ(read("gemma", published), read("gemma", R"("hidden_act": "gelu_pytorch_tanh")"));
  const auto neox = [&](const char* rope) {
    return read("gpt_neox", text(R"("rotary_emb_base": 333, "partial_rotary_factor": 1.0,
                                    "rope_parameters": )",
                                 rope));
  };
  EXPECT_EQ(neox(R"({"rope_type": "linear", "factor": 2.0})").rope_base, 333);
  EXPECT_EQ(neox(R"({"rope_type": "default", "rope_theta": 50.0})").rope_base, 50);
  EXPECT_EQ(neox("null").rotary_share, 0.25);
}

/// Scaled positions, in both places; numbers that a file leaves out are those of the model.
TEST(HubLlama, ScaledPositions) {
  const auto scaling = [](const std::string& rope, const std::string& more = "") {
    const HubConfig config(text(R"({"max_position_embeddings": 64)", more, ", ", rope, "}"), "c");
    return read_hub_model(*hub_family_of("llama"), config, TaskGiven::No).config.rope_scaling;
  };
  const std::string linear = "rope_type=linear,factor=2";
  EXPECT_EQ(scaling(R"("rope_scaling": {"type": "linear", "factor": 2.0})"), linear);
  EXPECT_EQ(scaling(R"("rope_parameters": {"rope_type": "linear", "factor": 2})"), linear);
  EXPECT_EQ(scaling(R"("rope_parameters": {"rope_theta": 2e6, "rope_type": "default"},
                       "rope_scaling": {"type": "dynamic", "factor": 3})"),
            "rope_type=dynamic,factor=3,original_max_position_embeddings=64");
  EXPECT_EQ(scaling(R"("rope_scaling": {"type": "dynamic", "factor": 3,
                       "original_max_position_embeddings": 32})"),
            "rope_type=dynamic,factor=3,original_max_position_embeddings=64");
  EXPECT_EQ(scaling(R"("rope_scaling": {"type": "yarn", "factor": 3, "beta_fast": null})",
                    R"(, "original_max_position_embeddings": 16)"),
            "rope_type=yarn,factor=3,original_max_position_embeddings=16");
  // What the file says beside them comes first; without a factor it is that of the lengths.
  EXPECT_EQ(scaling(R"("head_dim": 2, "rope_parameters": {"rope_type": "longrope",
                       "short_factor": [1], "long_factor": [2],
                       "original_max_position_embeddings": 8})",
                    R"(, "original_max_position_embeddings": 16)"),
            "rope_type=longrope,factor=4,original_max_position_embeddings=16,short_factor=1,"
            "long_factor=2");
  struct Case {
    const char *rope, *says;
  };
  const Case wrong[] = {
      {R"("rope_scaling": {"rope_type": "yarn"})", "factor is missing"},
      {R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0})", "low_freq_factor is missing"},
      {R"("rope_scaling": {"rope_type": "linear", "factor": "two"})", "factor is 'two'"},
      {R"("rope_scaling": {"rope_type": "linear", "factor": 2, "beta_fast": 3})", "beta_fast"},
      {R"("rope_scaling": {"rope_type": "spiral", "factor": 2})", "known are default, linear"},
      {R"("rope_scaling": {"rope_type": "linear", "factor": 2, "turn": 1})", "turn"},
      {R"("rope_parameters": {"partial_rotary_factor": 0.5})", "all channels"},
      {R"("rope_scaling": 3)", "it must be an object"}};
  for (const Case& c : wrong) {
    const std::string message = message_of([&] { scaling(c.rope); });
    EXPECT_NE(message.find(c.says), std::string::npos) << message;
    EXPECT_TRUE(message.starts_with("c")) << message;
  }
}

/// Positions of two kinds of layers: what rope_scaling says wins in those without windows.
TEST(HubGemma3, ScalingBesideParameters) {
  const auto read = [](const std::string& json) {
    const HubConfig config(json, "c");
    return read_hub_model(*hub_family_of("gemma3_text"), config, TaskGiven::No).config;
  };
  const std::string parameters =
      R"({"rope_parameters": {"full_attention": {"rope_theta": 5e5, "rope_type": "default"},
                              "sliding_attention": {"rope_theta": 300, "rope_type": "default"}})";
  const ModelConfig both =
      read(parameters + R"(, "rope_scaling": {"rope_type": "linear", "factor": 4}})");
  EXPECT_EQ(both.rope_scaling, "rope_type=linear,factor=4");
  EXPECT_EQ(both.rope_base, 500'000);
  EXPECT_EQ(both.local_rope_base, 300);
  EXPECT_EQ(read(parameters + R"(, "rope_scaling": {"rope_theta": 700}})").rope_base, 700);
  EXPECT_EQ(read(R"({"rope_scaling": {"rope_type": "linear", "factor": 8}})").rope_scaling,
            "rope_type=linear,factor=8");
  EXPECT_NE(message_of([&] {
              read(R"({"rope_scaling": {"type": "linear", "factor": 2}})");
            }).find("write rope_type"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              read(R"({"rope_parameters": 3, "rope_scaling": {"rope_type": "default"}})");
            }).find("rope_parameters is 3; it must be an object"),
            std::string::npos);
}

/// Keys that transformers has for Gemma 3 and does not compute by.
TEST(HubGemma3, KeysThatTransformersDoesNotRead) {
  const auto read = [](const std::string& json) {
    const HubConfig config(json, "c");
    return read_hub_model(*hub_family_of("gemma3_text"), config, TaskGiven::No).config;
  };
  EXPECT_NE(message_of([&] { read(R"({"attn_logit_softcapping": 50.0})"); }).find("Gemma 3"),
            std::string::npos);
  EXPECT_EQ(message_of([&] { read(R"({"attn_logit_softcapping": null})"); }), "");
  EXPECT_EQ(read(R"({"_sliding_window_pattern": 2})").global_every, 6);
  EXPECT_EQ(read(R"({"sliding_window_pattern": 3})").global_every, 3);
}

/// How far a token sees on each side, in both words; the window counts the token itself.
TEST(HubModernbert, SlidingWindow) {
  const auto window = [](const std::string& json) {
    const HubConfig config(json, "c");
    const HubModel model = read_hub_model(*hub_family_of("modernbert"), config, TaskGiven::No);
    EXPECT_TRUE(model.notices.empty());
    return model.config.window;
  };
  EXPECT_EQ(window(R"({"local_attention": 6})"), 4);
  EXPECT_EQ(window(R"({"local_attention": 6, "sliding_window": 5})"), 6);
  EXPECT_EQ(window(R"({"sliding_window": 0})"), 1);
}

/// Pairs of channels turn.
TEST(HubGptj, AnOddNumberOfChannelsIsRefused) {
  const HubConfig config(R"({"n_embd": 24, "n_head": 4, "rotary_dim": 5})", "c");
  const std::string message =
      message_of([&] { read_hub_model(*hub_family_of("gptj"), config, TaskGiven::No); });
  EXPECT_NE(message.find("rotary_dim is 5; channels turn in pairs"), std::string::npos) << message;
}

/// Which layers have windows.
TEST(HubQwen2, Windows) {
  const auto windows = [](const std::string& json) {
    const HubConfig config(json, "config.json");
    const ModelConfig c = read_hub_model(*hub_family_of("qwen2"), config, TaskGiven::No).config;
    return std::pair(c.window, c.global_every);
  };
  using Windows = std::pair<std::int64_t, std::int64_t>;
  const std::string on = R"({"num_hidden_layers": 4, "use_sliding_window": true, )";
  EXPECT_EQ(windows("{}"), Windows(0, 0));
  EXPECT_EQ(windows(R"({"sliding_window": 9})"), Windows(0, 0)) << "not used";
  EXPECT_EQ(windows(on + R"("sliding_window": 9, "max_window_layers": 0})"), Windows(9, 0));
  EXPECT_EQ(windows(on + R"("max_window_layers": 0})"), Windows(4096, 0));
  EXPECT_EQ(windows(on + R"("sliding_window": 9, "max_window_layers": 4})"), Windows(0, 0));
  EXPECT_EQ(windows(on + R"("sliding_window": 9, "layer_types":
      ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]})"),
            Windows(9, 2));
  EXPECT_EQ(windows(on + R"("sliding_window": 9, "layer_types":
      ["full_attention", "full_attention", "full_attention", "full_attention"]})"),
            Windows(0, 0));
  for (const char* wrong : {R"("sliding_window": 9, "max_window_layers": 2})",
                            R"("sliding_window": 9, "layer_types": ["full_attention"]})",
                            R"("sliding_window": 9, "layer_types":
            ["full_attention", "full_attention", "sliding_attention", "sliding_attention"]})",
                            R"("sliding_window": 9, "layer_types":
            ["sliding_attention", "chunked_attention", "sliding_attention", "full_attention"]})"})
    EXPECT_THROW(windows(on + wrong), Error) << wrong;
}

/// As they were published, by version 4 and before.
TEST(HubRoberta, PublishedConfig) {
  const HubConfig config(R"({"architectures": ["RobertaForMaskedLM"], "bos_token_id": 0,
      "attention_probs_dropout_prob": 0.1, "eos_token_id": 2, "hidden_act": "gelu",
      "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02,
      "intermediate_size": 3072, "layer_norm_eps": 1e-05, "max_position_embeddings": 514,
      "model_type": "roberta", "num_attention_heads": 12, "num_hidden_layers": 12,
      "pad_token_id": 1, "position_embedding_type": "absolute", "torch_dtype": "float32",
      "type_vocab_size": 1, "vocab_size": 50265})",
                         "config.json");
  ASSERT_EQ(&hub_family_of(config), hub_family_of("roberta"));
  const HubModel read = read_hub_model(*hub_family_of("roberta"), config, TaskGiven::No);
  const ModelConfig& c = read.config;
  EXPECT_EQ(c.positions, 512);
  EXPECT_EQ(c.vocabulary, 50265);
  EXPECT_EQ(c.norm_eps, 1e-5);
  EXPECT_EQ(c.dropout, 0.1);
  EXPECT_TRUE(read.notices.empty()) << join(read.notices);
}

/// Attention has a rate of its own; where it is the other one, that is what is recorded.
TEST(HubRates, AttentionHasItsOwn) {
  struct Case {
    const char* attention;
    double field, rate;
  };
  for (const Case& c : {Case{"0.1", -1, 0.1}, Case{"0.3", 0.3, 0.3}, Case{"0.0", 0, 0}}) {
    SCOPED_TRACE(c.attention);
    const HubConfig config(text(R"({"architectures": ["RobertaForMaskedLM"],
        "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": )",
                                c.attention, R"(,
        "hidden_size": 768, "intermediate_size": 3072, "max_position_embeddings": 514,
        "model_type": "roberta", "num_attention_heads": 12, "num_hidden_layers": 12,
        "pad_token_id": 1, "type_vocab_size": 1, "vocab_size": 50265})"),
                           "config.json");
    const ModelConfig model =
        read_hub_model(*hub_family_of("roberta"), config, TaskGiven::No).config;
    EXPECT_EQ(model.dropout, 0.1);
    EXPECT_EQ(model.attention_dropout, c.field);
    EXPECT_EQ(model.attention_rate(), c.rate);
  }
}

TEST(HubAlbert, PublishedConfig) {
  const HubConfig config(R"({"attention_probs_dropout_prob": 0, "hidden_act": "gelu_new",
      "hidden_dropout_prob": 0, "classifier_dropout_prob": 0.1, "embedding_size": 128,
      "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072,
      "max_position_embeddings": 512, "num_attention_heads": 12, "num_hidden_layers": 12,
      "num_hidden_groups": 1, "net_structure_type": 0, "gap_size": 0, "num_memory_blocks": 0,
      "inner_group_num": 1, "down_scale_factor": 1, "type_vocab_size": 2, "vocab_size": 30000,
      "layers_to_keep": [], "model_type": "albert", "layer_norm_eps": 1e-12,
      "torch_dtype": "float32"})",
                         "config.json");
  ASSERT_EQ(&hub_family_of(config), hub_family_of("albert"));
  const HubModel read = read_hub_model(*hub_family_of("albert"), config, TaskGiven::No);
  const ModelConfig& c = read.config;
  EXPECT_TRUE(read.notices.empty()) << join(read.notices);
  EXPECT_EQ(c.embedding_width, 128);
  EXPECT_EQ(c.layers, 12);
  EXPECT_EQ(c.positions, 512);
  EXPECT_EQ(c.dropout, 0);
}

/// The head is the table; version 4 says by one key that logits are not scaled, later ones by the
/// other. Tokens have theirs.
TEST(HubT5, HeadAndTokens) {
  const auto read = [](const std::string& json) {
    const HubConfig config(json, "config.json");
    return read_hub_model(*hub_family_of("t5"), config, TaskGiven::No).config;
  };
  for (const auto& [json, scale] :
       {std::pair("{}", 0.0),
        {R"({"tie_word_embeddings": false})", 1.0},
        {R"({"tie_word_embeddings": true, "scale_decoder_outputs": false})", 1.0},
        {R"({"tie_word_embeddings": false, "scale_decoder_outputs": true})", 0.0}}) {
    EXPECT_TRUE(read(json).tied_head);
    EXPECT_EQ(read(json).logit_scale, scale) << json;
  }
  EXPECT_EQ(read("{}").special_tokens, "0,0,1");
  EXPECT_EQ(read(R"({"pad_token_id": 3, "eos_token_id": 5})").special_tokens, "3,3,5");
  EXPECT_EQ(read(R"({"decoder_start_token_id": 7, "d_kv": 4})").special_tokens, "0,7,1");
}

/// Of a model whose texts begin with nothing the first token is null.
TEST(HubBart, Tokens) {
  const auto tokens = [](const std::string& json) {
    const HubConfig config(json, "config.json");
    return read_hub_model(*hub_family_of("bart"), config, TaskGiven::No).config;
  };
  EXPECT_EQ(tokens("{}").special_tokens, "1,2,2,0");
  EXPECT_EQ(tokens(R"({"eos_token_id": 5, "bos_token_id": 4})").special_tokens, "1,2,5,4");
  for (const char* wanted : {"1,2,2,0", "7,3,4", "9,9,8,10"}) {
    ModelConfig model = published("bart");
    model.special_tokens = wanted;
    HubJson json = HubJson::object();
    complete(model);
    write_keys(hub_family_of("bart")->keys, model, json);
    hub_family_of("bart")->write(model, json);
    EXPECT_EQ(tokens(json.dump()).special_tokens, wanted);
  }
}

/// What is added to logits there are zeros in every model; nothing is added here.
TEST(HubBart, LogitsHaveNoBias) {
  const TestFolder folder;
  Tensors weights = hub_tensors_of("bart");
  weights.at("final_logits_bias").set(7, 0.5);
  const std::string message =
      message_of([&] { PretrainedModel::open(folder_with(folder, "bart", weights)); });
  EXPECT_NE(message.find("tensor 'final_logits_bias' has 0.5 as element 7"), std::string::npos)
      << message;
  weights.erase("final_logits_bias");
  expect_parameters(PretrainedModel::open(folder_with(folder, "bart", weights)), golden("bart"));
}

TEST(HubErrors, NameWhatIsWrong) {
  const auto said = [](const std::string& family, const std::string& key,
                       const std::string& value) {
    const TestFolder folder;
    HubJson json = HubJson::parse(read_file(hub_folder(family) + "/config.json"));
    json[key] = HubJson::parse(value);
    write_atomically(folder / "config.json", json.dump());
    fs::copy_file(hub_folder(family) + "/model.safetensors", folder / "model.safetensors");
    const std::string message = message_of([&] { PretrainedModel::open(folder / ""); });
    EXPECT_NE(message.find(key), std::string::npos) << message;
    EXPECT_NE(message.find("config.json"), std::string::npos) << message;
    return message;
  };
  std::vector<std::string> known;
  for (const HubFamily* family : hub_families()) known.emplace_back(family->model_type);
  EXPECT_NE(said("gpt2", "model_type", "\"mamba\"").find(join(known)), std::string::npos);
  EXPECT_NE(said("gpt2", "activation_function", "\"relu\"").find("gelu_new"), std::string::npos);
  said("gpt2", "n_layer", "-1");
  said("gpt2", "n_layer", "1e30");
  said("gpt2", "n_embd", "\"wide\"");
  said("gpt2", "scale_attn_by_inverse_layer_idx", "true");
  said("gpt2", "attn_pdrop", "1.5");
  said("llama", "head_dim", "7");
  said("llama", "hidden_act", "\"gelu\"");
  said("bert", "type_vocab_size", "3");
  said("bert", "position_embedding_type", "\"relative_key\"");
  said("bert", "is_decoder", "true");
  said("albert", "num_hidden_groups", "2");
  said("albert", "inner_group_num", "2");
  said("albert", "hidden_act", "\"gelu\"");
  said("roberta", "type_vocab_size", "2");
  said("roberta", "pad_token_id", "3");
  said("roberta", "max_position_embeddings", "2");
  said("t5", "feed_forward_proj", "\"gated-silu\"");
  said("t5", "pad_token_id", "-1");
  said("bart", "activation_function", "\"mish\"");
  said("bart", "decoder_attention_heads", "0");
  said("bart", "normalize_before", "true");
  said("bart", "eos_token_id", "[2]");
  said("t5", "decoder_start_token_id", "1000000");
  said("t5", "is_encoder_decoder", "false");
  said("bart", "is_encoder_decoder", "false");
  said("llama", "quantization_config", R"({"quant_method": "gptq"})");
  const auto has = [](const std::string& message, const std::string& what) {
    EXPECT_NE(message.find(what), std::string::npos) << message;
  };
  const std::string families = "../families/";
  has(said(families + "gpt_oss", "quantization_config", R"({"quant_method": "gptq"})"),
      "weights are read from mxfp4, f32, bf16 and f16");
  has(said(families + "mt5", "eos_token_id", "37"), "token 37 must be below vocab_size 37");
  has(said(families + "marian", "eos_token_id", "37"), "token 37 must be below vocab_size 37");
  has(said(families + "mt5", "tie_word_embeddings", "\"no\""), "it must be true or false");
  said(families + "mt5", "is_encoder_decoder", "false");
  // d_ff has the size that two heads of 7 channels make.
  has(said(families + "mt5", "d_kv", "7"), "(num_heads is 2 and d_kv is 7 or d_ff is 14)");
  has(said(families + "deberta_v2", "max_relative_positions", "4"),
      "max_relative_positions is 4; it is the farthest distance, which must be from 5 "
      "(position_buckets 6 / 2 + 2) to ");
  has(said(families + "deberta_v2", "max_position_embeddings", "4"),
      "max_position_embeddings is 4; it is the farthest distance, which must be from 5 ");
  has(said(families + "deberta_v2", "position_buckets", "7"), "it must be even");
  const std::string order = R"(["full_attention", "full_attention", "sliding_attention",
                               "sliding_attention"])";
  has(said(families + "modernbert", "layer_types", order),
      "the first and each so-many-th behind it alone have none (full_attention); "
      "local_attention says how wide windows are");
  has(said(families + "gemma3_text", "layer_types", R"(["full_attention", "sliding_attention"])"),
      "each so-many-th alone has none (full_attention); sliding_window, ");
}

/// The error of opening gpt2 whose files were changed.
template <typename Change>
std::string changed(const Change& change) {
  const TestFolder folder;
  fs::copy_file(hub_folder("gpt2") + "/config.json", folder / "config.json");
  fs::copy_file(hub_folder("gpt2") + "/model.safetensors", folder / "model.safetensors");
  change(folder);
  return message_of([&] { PretrainedModel::open(folder / ""); });
}

TEST(HubErrors, OfFiles) {
  const auto has = [](const std::string& message, const std::string& what) {
    EXPECT_NE(message.find(what), std::string::npos) << message;
  };
  has(changed([](const TestFolder& f) { write_atomically(f / "config.json", "[1]"); }),
      "not a JSON object");
  has(changed([](const TestFolder& f) {
        Tensors weights = hub_tensors_of("gpt2");
        weights.at("transformer.h.0.mlp.c_fc.weight") = HostTensor(DType::F32, {32, 100});
        write(f / "model.safetensors", weights);
      }),
      "");
  has(changed([](const TestFolder& f) {
        Tensors weights = hub_tensors_of("gpt2");
        weights.at("transformer.h.0.attn.c_attn.weight") = HostTensor(DType::F32, {96, 32});
        write(f / "model.safetensors", weights);
      }),
      "tensor 'transformer.h.0.attn.c_attn.weight' is [96,32]");
  has(changed([](const TestFolder& f) {
        fs::remove(f / "model.safetensors");
        write_atomically(f / "pytorch_model.bin", "PK");
      }),
      "save_pretrained");
  for (const char* name : {"model.safetensors", "model.safetensors.index.json"})
    has(changed([&](const TestFolder& f) {
          fs::remove(f / "model.safetensors");
          fs::create_symlink("removed", f / name);
        }),
        name);
  const auto index = [](const std::string& json) {
    return changed([&](const TestFolder& f) {
      fs::rename(f / "model.safetensors", f / "part.safetensors");
      write_atomically(f / "model.safetensors.index.json", json);
    });
  };
  has(index("{}"), "weight_map");
  has(index(R"({"weight_map": {"a": "../part.safetensors"}})"), "a file beside it");
  has(index(R"({"weight_map": {"a": "none.safetensors"}})"), "none.safetensors is missing");
  // Deeper than functions that call themselves could follow.
  std::string deep(200, '[');
  deep += std::string(200, ']');
  has(changed([&](const TestFolder& f) {
        write_atomically(f / "config.json", text(R"({"model_type": "gpt2", "a": )", deep, "}"));
      }),
      "config.json has lists or objects nested deeper than 100");
  has(index(text(R"({"weight_map": {"a": )", deep, "}}")), "index.json has lists or objects");
  // Each key is compared with all before it; an index may have any number.
  std::string many;
  for (int i = 0; i < 50'001; ++i) many += text(i == 0 ? "" : ",", "\"k", i, "\": \"f\"");
  has(changed([&](const TestFolder& f) {
        write_atomically(f / "config.json", text(R"({"model_type": "gpt2", )", many, "}"));
      }),
      "config.json has more than 50000 keys");
  has(index(text(R"({"weight_map": {)", many, "}}")), "f is missing, in which");
  // A name that is cut is cut between its characters.
  std::string umlauts = "x";
  for (int i = 0; i < 200; ++i) umlauts += "\u00e4";
  const HubJson names = {{"id2label", {{"1", umlauts}}}};
  const std::string labels = message_of([&] { read_labels(HubConfig(names.dump(), "c.json")); });
  has(labels, "without a name for 0");
  EXPECT_EQ(replaced_utf8(labels), labels);
  // Part of a parameter.
  const TestFolder folder;
  Tensors weights = hub_tensors_of("llama");
  weights.erase("model.layers.1.self_attn.k_proj.weight");
  has(message_of([&] { PretrainedModel::open(folder_with(folder, "llama", weights)); }),
      "lacks 1 of the tensors that");
  has(message_of([&] { PretrainedModel::open(folder / "", {.or_else = ", or give --flag"}); }),
      "download it again, or give --flag");
}

TEST(Hub, TensorsWithoutUseAreTold) {
  const TestFolder folder;
  Tensors weights = hub_tensors_of("gpt2");
  weights.emplace("reward.weight", HostTensor(DType::F32, {2, 32}));
  weights.emplace("transformer.h.0.attn.bias", HostTensor(DType::Bool, {1, 1, 16, 16}));
  weights.emplace("lm_head.weight", weights.at("transformer.wte.weight"));
  const PretrainedModel model = PretrainedModel::open(folder_with(folder, "gpt2", weights));
  ASSERT_EQ(model.notices().size(), 1);
  EXPECT_TRUE(model.notices()[0].ends_with(": reward.weight")) << model.notices()[0];
}

/// A model that diverged, saved with both names of its tied head.
TEST(Hub, TwoNamesOfOneTensorMayHaveNoNumbers) {
  const TestFolder folder;
  Tensors weights = hub_tensors_of("gpt2");
  HostTensor& table = weights.at("transformer.wte.weight");
  const float none = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(table.bytes().data(), &none, sizeof(none));
  weights.emplace("lm_head.weight", table);
  const PretrainedModel model = PretrainedModel::open(folder_with(folder, "gpt2", weights));
  EXPECT_TRUE(model.config().tied_head);
  EXPECT_TRUE(model.notices().empty()) << join(model.notices());
}

/// A program that computes a family's loss itself brings a copy of the family with its tasks.
TEST(SavePretrained, AFamilyOfAProgramHasTheConfigOfTheLibrarys) {
  for (const char* name : {"gpt2", "bert", "t5"}) {
    const TestFolder folder;
    const Tensors ours = golden(name);
    ModelConfig model = PretrainedModel::open(hub_folder(name)).config();
    save_pretrained(folder / "library", model, reader_of(ours));
    const std::vector<FamilyTask> tasks(model.family->tasks.begin(), model.family->tasks.end());
    ModelFamily own = *model.family;
    own.tasks = tasks, own.replaces = true;
    model.family = own;
    save_pretrained(folder / "own", model, reader_of(ours));
    const std::string config = read_file(folder / "own/config.json");
    EXPECT_EQ(config, read_file(folder / "library/config.json"));
    EXPECT_EQ(config.find("problem_type"), std::string::npos) << config;
  }
}

TEST(SavePretrained, ZerosStandForBiasesThatAModelLacks) {
  const TestFolder folder;
  ModelConfig model = PretrainedModel::open(hub_folder("gpt2")).config();
  model.bias = false;
  Tensors ours = golden("gpt2");
  std::erase_if(ours, [](const auto& each) { return each.first.ends_with(".bias"); });
  save_pretrained(folder / "out", model, reader_of(ours));
  Tensors wanted = golden("gpt2");
  for (auto& [name, tensor] : wanted) {
    if (name.ends_with(".bias")) tensor = HostTensor(tensor.type());
  }
  expect_parameters(PretrainedModel::open(folder / "out"), wanted);
}

}  // namespace
}  // namespace tessera
