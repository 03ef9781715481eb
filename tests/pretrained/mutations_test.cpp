/// Every tensor and every key of each golden folder is removed, renamed, of another kind and of
/// another shape, one at a time: the folder is read as before, or as transformers reads it, or it
/// is refused by the name of what is wrong. Nothing else is allowed.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "files/test_data.h"
#include "repo_file.h"
#include "tessera/base/text.h"
#include "tessera/files/safetensors.h"
#include "tessera/pretrained/hub/hub_family.h"
#include "tessera/pretrained/pretrained_model.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using Weights = std::map<std::string, HostTensor>;

/// What became of a folder.
struct Outcome {
  std::string refusal;  // empty: it was read
  ModelConfig config = {};
  std::map<std::string, std::vector<float>> values = {};
  std::string notices = {};

  bool same_model(const Outcome& other) const {
    return refusal.empty() && other.refusal.empty() && config == other.config &&
           values == other.values;
  }
};

class HubMutations : public testing::TestWithParam<std::string> {
 protected:
  HubMutations() {
    const std::string golden = repo_file(text("tests/golden/", GetParam()));
    json_ = HubJson::parse(read_file(golden + "/config.json"));
    const SafetensorsFile file(golden + "/model.safetensors");
    for (const StoredTensor& tensor : file.tensors())
      weights_.emplace(tensor.name, file.load(tensor.name));
    usual_ = outcome(json_, weights_);
  }

  void write(const Weights& weights) const {
    std::vector<TensorSource> sources;
    for (const auto& [name, tensor] : weights)
      sources.push_back(TensorSource::of(name, tensor.type(), tensor.bytes()));
    // Without the care for crashes that takes most of the time.
    std::ofstream file(folder_ / "model.safetensors", std::ios::binary);
    write_safetensors(
        [&](std::span<const std::byte> bytes) {
          file.write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
        },
        std::move(sources), {});
  }
  Outcome outcome(const HubJson& json) const {
    std::ofstream(folder_ / "config.json") << json.dump();
    Outcome out;
    out.refusal = message_of([&] {
      const PretrainedModel model = PretrainedModel::open(folder_ / "");
      out.config = with_derived(model.config());
      for (const auto& [name, shape] : model.parameters()) {
        std::vector<float>& values = out.values[name];
        values.resize(static_cast<std::size_t>(shape.numel()));
        read_whole(model, name, std::as_writable_bytes(std::span(values)));
      }
      out.notices = join(model.notices(), "\n");
    });
    return out;
  }
  Outcome outcome(const HubJson& json, const Weights& weights) const {
    write(weights);
    return outcome(json);
  }
  /// Refused, by a message that has the name.
  void expect_refused(const Outcome& found, std::string name) const {
    if (name == "output_layer.bias" && found.refusal.find(name) == std::string::npos)
      name = "lm_head.bias";  // what it is called by those that have no other sign of Megatron-core
    EXPECT_FALSE(found.refusal.empty()) << "read, with notices " << found.notices;
    EXPECT_NE(found.refusal.find(name), std::string::npos) << found.refusal;
  }

  const TestFolder folder_;
  HubJson json_;
  Weights weights_;
  Outcome usual_;
};
std::vector<std::string> golden_folders() {
  std::vector<std::string> out;
  for (const char* kind : {"hub", "families"}) {
    for (const auto& entry : fs::directory_iterator(repo_file(text("tests/golden/", kind))))
      out.push_back(text(kind, "/", entry.path().filename().string()));
  }
  std::ranges::sort(out);
  return out;
}
INSTANTIATE_TEST_SUITE_P(Families, HubMutations, testing::ValuesIn(golden_folders()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '/', '_');
                           return name;
                         });

/// Tensors that a folder may lack: what they are follows from others.
bool may_lack(const std::string& name, const ModelConfig& model) {
  const std::span<const HubConstant> constants = hub_family_of(model.family)->constants;
  return name == "lm_head.weight" ||
         std::ranges::find(constants, name, &HubConstant::name) != constants.end();
}
/// The head of its own of T5 1.1 is taken for the table too, as by transformers; a notice says so.
bool is_taken_for(const std::string& name, const Outcome& found) {
  return name == "shared.weight" &&
         found.notices.find("lacks 'shared.weight'") != std::string::npos;
}

TEST_P(HubMutations, OfTensors) {
  ASSERT_EQ(usual_.refusal, "");
  for (const auto& [name, tensor] : weights_) {
    SCOPED_TRACE(name);
    Weights changed = weights_;
    changed.erase(name);
    const Outcome removed = outcome(json_, changed);
    // A head of its own that is not there is the table, or of LLaMA, which has none, missing.
    const bool untied = name == "lm_head.weight" && !usual_.config.tied_head;
    if (!is_taken_for(name, removed) && !(may_lack(name, usual_.config) && removed.refusal.empty()))
      expect_refused(removed, name);
    if (may_lack(name, usual_.config) && removed.refusal.empty()) {
      EXPECT_TRUE(untied ? removed.config.tied_head : removed.same_model(usual_));
    }
    changed.emplace("renamed." + name + "_", tensor);
    const Outcome renamed = outcome(json_, changed);
    if (renamed.refusal.empty()) {
      EXPECT_TRUE(may_lack(name, usual_.config) || is_taken_for(name, renamed));
      EXPECT_NE(renamed.notices.find("renamed."), std::string::npos) << renamed.notices;
    } else {
      expect_refused(renamed, name);
    }
    changed = weights_;
    changed.insert_or_assign(name, HostTensor(DType::I32, tensor.shape()));
    expect_refused(outcome(json_, changed), name);
    HostTensor wide(DType::F64, tensor.shape());
    for (std::int64_t i = 0; i < tensor.numel(); ++i) wide.set(i, tensor.at(i));
    changed.insert_or_assign(name, wide);
    EXPECT_TRUE(outcome(json_, changed).same_model(usual_));
  }
}

TEST_P(HubMutations, OfShapes) {
  for (const auto& [name, tensor] : weights_) {
    SCOPED_TRACE(name);
    const Shape& shape = tensor.shape();
    std::vector<Shape> others = {{tensor.numel(), 1}};
    if (shape.ndim() > 1) others.push_back({tensor.numel()});
    if (shape.ndim() == 2 && shape[0] != shape[1]) others.push_back({shape[1], shape[0]});
    others.push_back(shape);
    others.back()[0] += 1;
    for (const Shape& other : others) {
      if (other == shape) continue;
      Weights changed = weights_;
      changed.insert_or_assign(name, HostTensor(DType::F32, other));
      expect_refused(outcome(json_, changed), name);
    }
  }
}

/// Keys without a default in transformers' configurations: a task, a length of samples, T5's scale,
/// which is as tie_word_embeddings says, and a rate that is 0.1 for those who classify tokens.
bool follows_from_others(const std::string& key) {
  return key == "architectures" || key == "id2label" || key == "n_positions" ||
         key == "scale_decoder_outputs" || key == "classifier_dropout";
}

TEST_P(HubMutations, OfKeysThatAreMissing) {
  const HubJson defaults = HubJson::parse(read_file(
      repo_file("tests/golden/hub_defaults.json")))[json_["model_type"].get<std::string>()];
  for (const auto& [key, value] : json_.items()) {
    SCOPED_TRACE(key);
    HubJson removed = json_, renamed = json_;
    removed.erase(key);
    const Outcome found = outcome(removed);
    // As transformers' default, whatever becomes of that.
    if (defaults.contains(key)) {
      HubJson standard = json_;
      standard[key] = defaults[key];
      const Outcome wanted = outcome(standard);
      EXPECT_EQ(found.refusal.empty(), wanted.refusal.empty()) << found.refusal << "\n"
                                                               << wanted.refusal;
      if (found.refusal.empty()) {
        EXPECT_TRUE(found.same_model(wanted));
      }
    } else if (found.refusal.empty() && !follows_from_others(key)) {
      EXPECT_TRUE(found.same_model(usual_));
    }
    // Without the word that ties it, a head is missing.
    const std::string about = key == "tie_word_embeddings" ? "lm_head.weight" : key;
    if (!found.refusal.empty()) {
      EXPECT_NE(found.refusal.find(about), std::string::npos) << found.refusal;
    }
    // A slip is not taken for a key that nobody knows, unless the key means nothing here.
    renamed.erase(key);
    renamed[key + "x"] = value;
    const Outcome slipped = outcome(renamed);
    if (slipped.refusal.empty()) {
      EXPECT_NE(slipped.notices.find(key + "x"), std::string::npos) << slipped.notices;
      EXPECT_TRUE(slipped.same_model(found));
    } else {
      EXPECT_TRUE(slipped.refusal == found.refusal ||
                  slipped.refusal.find(key) != std::string::npos)
          << slipped.refusal;
    }
  }
}

TEST_P(HubMutations, OfKeysOfAnotherKind) {
  for (const auto& [key, value] : json_.items()) {
    SCOPED_TRACE(key);
    for (const HubJson& other : {HubJson(nullptr), HubJson("4"), HubJson(7.5), HubJson(-3),
                                 HubJson(true), HubJson::array({1}), HubJson({{"a", 1}})}) {
      SCOPED_TRACE(other.dump());
      if (other == value) continue;
      HubJson changed = json_;
      changed[key] = other;
      const Outcome found = outcome(changed);
      if (!found.refusal.empty()) {
        EXPECT_NE(found.refusal.find(key), std::string::npos) << found.refusal;
        continue;
      }
      // A key of no number, or a value of the right kind: then it is that which was said.
      const bool right = value.is_null()           ? true
                         : value.is_number_float() ? other.is_number() || other.is_null()
                         : value.is_object()       ? other.is_object() || other.is_null()
                         : value.is_boolean()      ? other.is_boolean() || key == "scale_embedding"
                                                   : other.is_null();
      if (!right && key != "architectures") {
        EXPECT_TRUE(found.same_model(usual_));
      }
    }
  }
}

}  // namespace
}  // namespace tessera
