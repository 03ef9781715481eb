/// Folders as others leave them: other names of tensors, other files of weights, other classes.
/// Each is read as transformers reads it, or refused with what to do.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>

#include "files/test_data.h"
#include "repo_file.h"
#include "tessera/base/text.h"
#include "tessera/files/safetensors.h"
#include "tessera/pretrained/hub/hub_family.h"
#include "tessera/pretrained/pretrained_model.h"

namespace tessera {
namespace {

using Tensors = std::map<std::string, HostTensor>;
using Values = std::map<std::string, std::vector<float>>;

/// A golden folder in memory: what a row of a table changes, and writes as a folder.
struct HubCopy {
  explicit HubCopy(const std::string& golden) {
    const std::string from = repo_file(text("tests/golden/hub/", golden));
    config = HubJson::parse(read_file(from + "/config.json"));
    const SafetensorsFile file(from + "/model.safetensors");
    for (const StoredTensor& tensor : file.tensors())
      tensors.emplace(tensor.name, file.load(tensor.name));
  }

  void rename(const std::string& from, const std::string& to) {
    auto node = tensors.extract(from);
    ASSERT_FALSE(node.empty()) << from;
    node.key() = to;
    tensors.insert(std::move(node));
  }
  void rename_all(const std::function<std::string(const std::string&)>& rule) {
    Tensors renamed;
    for (auto& [name, tensor] : tensors) renamed.emplace(rule(name), std::move(tensor));
    tensors = std::move(renamed);
  }
  void write_config(const TestFolder& folder) const {
    std::ofstream(folder / "config.json") << config.dump();
  }
  void write_weights(const TestFolder& folder, const std::string& name) const {
    std::vector<TensorSource> sources;
    for (const auto& [theirs, tensor] : tensors)
      sources.push_back(TensorSource::of(theirs, tensor.type(), tensor.bytes()));
    write_safetensors(folder / name, std::move(sources), {});
  }
  void write(const TestFolder& folder) const {
    write_config(folder);
    write_weights(folder, "model.safetensors");
  }

  HubJson config;
  Tensors tensors;
};

Values values_of(const PretrainedModel& model) {
  Values out;
  for (const auto& [name, shape] : model.parameters()) {
    std::vector<float>& values = out[name];
    values.resize(static_cast<std::size_t>(shape.numel()));
    read_whole(model, name, std::as_writable_bytes(std::span(values)));
  }
  return out;
}

Values usual_of(const std::string& golden) {
  return values_of(PretrainedModel::open(repo_file(text("tests/golden/hub/", golden))));
}

/// A tensor of its own that differs in one element.
HostTensor changed(const HostTensor& tensor, std::int64_t element, double value) {
  HostTensor out(tensor.type());
  std::ranges::copy(tensor.bytes(), out.bytes().begin());
  out.set(element, value);
  return out;
}

void expect_has(const std::string& message, const std::string& what) {
  EXPECT_NE(message.find(what), std::string::npos) << "not '" << what << "' in '" << message << "'";
}

/// What programs put before all names, or within them.
TEST(HubDoors, PrefixesOfOthersAreTakenOff) {
  struct Row {
    const char* name;
    std::string (*rule)(const std::string& theirs);
  };
  const Row rows[] = {
      {"DataParallel", [](const std::string& s) { return "module." + s; }},
      {"torch.compile", [](const std::string& s) { return "_orig_mod." + s; }},
      {"both", [](const std::string& s) { return "module._orig_mod." + s; }},
      {"FSDP, within names",
       [](const std::string& s) {
         const std::size_t dot = s.find('.');
         return dot == s.npos ? "_fsdp_wrapped_module." + s
                              : s.substr(0, dot) + "._fsdp_wrapped_module" + s.substr(dot);
       }},
      {"a model within another", [](const std::string& s) { return "language_model." + s; }},
      {"two levels", [](const std::string& s) { return "model.language_model." + s; }},
      {"a class of transformers", [](const std::string& s) { return "transformer." + s; }},
  };
  for (const char* golden : {"gpt2", "llama", "bert", "roberta", "albert", "t5", "t5_v1_1", "bart",
                             "vit", "gpt2_classes", "bert_tags"}) {
    const Values wanted = usual_of(golden);
    for (const Row& row : rows) {
      SCOPED_TRACE(text(golden, ": ", row.name));
      const TestFolder folder;
      HubCopy copy(golden);
      copy.rename_all(row.rule);
      copy.write(folder);
      EXPECT_EQ(message_of([&] {
                  const PretrainedModel model = PretrainedModel::open(folder.path());
                  EXPECT_EQ(values_of(model), wanted);
                  EXPECT_TRUE(model.notices().empty()) << join(model.notices());
                }),
                "");
    }
  }
}

TEST(HubDoors, WhichNamesAreMeantMustBeClear) {
  struct Row {
    const char* name;
    void (*change)(HubCopy& copy);
    const char* refusal;
  };
  const Row rows[] = {
      {"no tensor is of the family",
       [](HubCopy& c) { c.rename_all([](const std::string& s) { return "x" + s + "x"; }); },
       "tensors of '"},
      {"a wrapped copy beside the plain one",
       [](HubCopy& c) {
         const Tensors plain = c.tensors;
         c.rename_all([](const std::string& s) { return "module." + s; });
         c.tensors.insert(plain.begin(), plain.end());
       },
       "which differ only in a wrapper's prefix; keep one"},
      {"two models",
       [](HubCopy& c) {
         const Tensors plain = c.tensors;
         c.rename_all([](const std::string& s) { return "student." + s; });
         for (const auto& [name, tensor] : plain) c.tensors.emplace("teacher." + name, tensor);
       },
       "has several models of gpt2: names begin with 'student.transformer.' and with "
       "'teacher.transformer.'; save the right one separately"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const TestFolder folder;
    HubCopy copy("gpt2");
    row.change(copy);
    copy.write(folder);
    expect_has(message_of([&] { PretrainedModel::open(folder.path()); }), row.refusal);
  }
}

/// Every second name of every family: alone, as an equal copy, and as a copy that differs.
TEST(HubDoors, TiedTensorsUnderEachOfTheirNames) {
  const std::pair<const char*, const char*> goldens[] = {
      {"gpt2", "gpt2"},     {"llama", "llama"},          {"bert", "bert"},
      {"albert", "albert"}, {"albert_masked", "albert"}, {"bert_masked", "bert"},
      {"bart", "bart"},     {"roberta", "roberta"},      {"t5", "t5"}};
  int ties = 0;
  for (const auto& [golden, name] : goldens) {
    const HubFamily* const family = hub_family_of(name);
    HubCopy saved(golden);
    if (golden == std::string("llama")) {  // a small one, as some are published
      saved.config["tie_word_embeddings"] = true;
      saved.tensors.erase("lm_head.weight");
    }
    const TestFolder plain;
    saved.write(plain);
    const Values wanted = values_of(PretrainedModel::open(plain.path()));
    for (const HubTie& tie : family->ties) {
      const std::string theirs(tie.theirs), also(tie.also);
      if (!saved.tensors.contains(theirs) || saved.tensors.contains(also)) continue;
      SCOPED_TRACE(text(golden, ": ", also));
      ++ties;
      const auto opened = [&](void (*change)(HubCopy&, const std::string&, const std::string&)) {
        const TestFolder folder;
        HubCopy copy = saved;
        change(copy, theirs, also);
        copy.write(folder);
        std::pair<std::string, Values> out;
        out.first =
            message_of([&] { out.second = values_of(PretrainedModel::open(folder.path())); });
        return out;
      };
      EXPECT_EQ(opened([](HubCopy& c, const std::string& from, const std::string& to) {
                  c.rename(from, to);
                }).second,
                wanted);
      EXPECT_EQ(opened([](HubCopy& c, const std::string& from, const std::string& to) {
                  c.tensors.emplace(to, c.tensors.at(from));
                }).second,
                wanted);
      const auto [said, found] =
          opened([](HubCopy& c, const std::string& from, const std::string& to) {
            c.tensors.emplace(to, changed(c.tensors.at(from), 3, 7));
          });
      if (tie.may_differ) {
        ASSERT_TRUE(found.contains("head.weight")) << said;
        EXPECT_EQ(found.at("head.weight")[3], 7);
      } else {
        expect_has(said, text("tensor '", also, "' differs from '", theirs, "'"));
      }
    }
  }
  EXPECT_GE(ties, 12);
}

/// A merged adapter: the config still says tied, and the file has a head. It is told.
TEST(HubDoors, AHeadOfItsOwnIsToldAlthoughTheConfigTies) {
  for (const auto& [golden, table] :
       {std::pair("gpt2", "transformer.wte.weight"), std::pair("t5", "shared.weight"),
        std::pair("llama", "model.embed_tokens.weight")}) {
    SCOPED_TRACE(golden);
    const TestFolder folder;
    HubCopy copy(golden);
    copy.config["tie_word_embeddings"] = true;
    copy.tensors.insert_or_assign("lm_head.weight", changed(copy.tensors.at(table), 0, 5));
    copy.write(folder);
    const PretrainedModel model = PretrainedModel::open(folder.path());
    EXPECT_EQ(values_of(model).at("head.weight")[0], 5);
    EXPECT_FALSE(model.config().tied_head);
    expect_has(join(model.notices()), "so the head is a separate matrix");
  }
}

TEST(HubDoors, OtherFilesOfWeightsAreNamedWithWhatToDo) {
  struct Row {
    const char *file, *what_to_do;
  };
  const Row rows[] = {
      {"pytorch_model.bin", "make safetensors of it"},
      {"pytorch_model-00001-of-00002.bin", "make safetensors of it"},
      {"tf_model.h5", "save it with transformers"},
      {"flax_model.msgpack", "save it with transformers"},
      {"model.ckpt.index", "save it with transformers"},
      {"consolidated.00.pth", "under their maker's own names"},
      {"consolidated.safetensors", "under their maker's own names"},
      {"model-00001-of-00002.safetensors", "their index model.safetensors.index.json is missing"},
      {"model.fp16.safetensors", "rename it if it is the model"},
      {"other.safetensors.index.json", "rename it"},
      {"model-q4.gguf", "quantized weights are not read"},
      {"adapter_model.safetensors", "merge it with PEFT"},
      {"model.onnx", "save it with transformers"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.file);
    const TestFolder folder;
    HubCopy("gpt2").write_config(folder);
    std::ofstream(folder / row.file) << "weights";
    const std::string message = message_of([&] { PretrainedModel::open(folder.path()); });
    expect_has(message, text("has no model.safetensors, but ", row.file));
    expect_has(message, row.what_to_do);
  }
}

TEST(HubDoors, WhatIsNoModelSaysWhatItIs) {
  struct Row {
    const char* name;
    void (*change)(const TestFolder& folder);
    const char* refusal;
  };
  const Row rows[] = {
      {"a pointer as weights",
       [](const TestFolder& f) {
         std::ofstream(f / "model.safetensors")
             << "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";
       },
       "model.safetensors is a pointer of Git LFS, not the file itself; get it with `git lfs "
       "pull`"},
      {"a pointer as config",
       [](const TestFolder& f) {
         std::ofstream(f / "config.json")
             << "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";
       },
       "config.json is a pointer of Git LFS"},
      {"an adapter beside a config",
       [](const TestFolder& f) {
         std::ofstream(f / "adapter_config.json") << R"({"base_model_name_or_path": "org/base"})";
       },
       "has an adapter (adapter_config.json), of the model org/base, beside a config.json"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const TestFolder folder;
    HubCopy("gpt2").write(folder);
    row.change(folder);
    expect_has(message_of([&] { PretrainedModel::open(folder.path()); }), row.refusal);
  }
}

/// A class whose head is not known here: the tasks that fit are named; a task that is given counts.
TEST(HubDoors, ClassesThatAreNotKnownAreRefusedWithTheTasksThatFit) {
  struct Row {
    const char *golden, *class_name, *task;
  };
  const Row rows[] = {
      {"gpt2", "GPT2ForQuestionAnswering", "token_classification (GPT2ForTokenClassification)"},
      {"gpt2", "GPT2DoubleHeadsModel", "sequence_classification (GPT2ForSequenceClassification)"},
      {"llama", "LlamaForQuestionAnswering", "causal_lm (LlamaForCausalLM)"},
      {"bert", "BertForNextSentencePrediction", "multiple_choice (BertForMultipleChoice)"},
      {"roberta", "RobertaForCausalLM", "masked_lm (RobertaForMaskedLM)"},
      {"albert", "AlbertForNothing", "question_answering (AlbertForQuestionAnswering)"},
      {"t5", "T5ForQuestionAnswering", "T5ForConditionalGeneration"},
      {"bart", "BartForQuestionAnswering", "BartForConditionalGeneration"},
      {"vit", "ViTForMaskedImageModeling", "ViTForImageClassification"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.class_name);
    const TestFolder folder;
    HubCopy copy(row.golden);
    copy.config["architectures"] = {row.class_name};
    copy.write(folder);
    const std::string message = message_of([&] { PretrainedModel::open(folder.path()); });
    expect_has(message, row.class_name);
    expect_has(message, row.task);
    EXPECT_EQ(message_of([&] { PretrainedModel::open(folder.path(), {.task_given = true}); }), "");
  }
}

}  // namespace
}  // namespace tessera
