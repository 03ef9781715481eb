#include <algorithm>
#include <array>

#include "tessera/apps/model_names.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/models/family.h"
#include "tessera/rapidformer/asked_run.h"
#include "tessera/train/pretrained_start.h"

namespace tessera {

namespace {

constexpr const char* kPretrained = "pretrained-model-name-or-path";

/// Where the model of transformers lies, which may be given by a name.
void open_pretrained(AskedRun& run) {
  const std::string* const name = run.flags.find(kPretrained);
  if (name == nullptr) return;
  run.problems.gather([&] {
    require(!name->empty(), "--", kPretrained, " is given and empty; name a folder or a model");
    const std::string folder = model_folder(*name);
    if (PretrainedModel::is_at(folder)) {
      run.pretrained.emplace(PretrainedModel::open(
          folder, {.weights = OpenPretrained::Weights::IfThere, .task_given = true}));
    } else if (run.pretraining) {
      throw with_download_hint(
          Error(Fault::Usage, text("--", kPretrained, " ", *name, ": there is no folder with a ",
                                   "config.json of that name")),
          *name);
    }
  });
  if (!run.pretraining || run.whose == FlagsOf::Program)
    run.flags.set("init-from", {*name}, text("--", kPretrained));
}

/// The family that a type of tokenizer stands for.
std::string family_of_tokenizer(const AskedRun& run, const std::string& type) {
  if (type == "Llama2Tokenizer") return "llama";
  if (!type.starts_with("BertWordPiece"))
    return type.starts_with("GPT") || type.starts_with("SentencePiece") ? "gpt2" : "";
  return run.flags.count("vocab-extra-ids").value_or(0) > 0 ? "t5" : "bert";
}

/// Flags that say that the model is a LLaMA; empty: none.
std::string llama_words(const AskedRun& run) {
  const auto is = [&](const char* name, const char* value) {
    return run.flags.find(name) != nullptr && *run.flags.find(name) == value;
  };
  std::string out;
  const auto add = [&](bool given, const char* name) {
    if (given) out += text(out.empty() ? "" : ", ", run.flags.written(name));
  };
  add(is("position-embedding-type", "rope"), "position-embedding-type");
  add(run.flags.on("use-rotary-position-embeddings"), "use-rotary-position-embeddings");
  add(run.flags.on("swiglu"), "swiglu");
  add(is("normalization", "RMSNorm"), "normalization");
  return out;
}

void refuse_words(AskedRun& run, const char* name, std::initializer_list<std::string_view> known) {
  const std::string* const value = run.flags.find(name);
  if (value != nullptr && std::ranges::find(known, *value) == known.end())
    run.problems.add(text(run.flags.written(name), " is not possible: it can be ",
                          join(std::vector<std::string>(known.begin(), known.end()), " or ")));
}

/// In the file, or that of the preset; empty: they say nothing of it.
std::string family_elsewhere(const AskedRun& run) {
  if (!run.told_elsewhere) return "";
  const RunConfig config = run.so_far();
  const bool told = !config.preset.empty() || !config.untold.contains("family");
  return told ? std::string(config.model.family.name()) : "";
}

/// Of the folder, of --family, or what tokenizer and layers say; nullptr: not known.
const ModelFamily* take_family(AskedRun& run) {
  refuse_words(run, "position-embedding-type", {"rope", "learned_absolute"});
  refuse_words(run, "normalization", {"LayerNorm", "RMSNorm"});
  const std::string llama = llama_words(run);
  const std::string* const told = run.flags.find("family");
  const std::string elsewhere = family_elsewhere(run);
  const std::string* const type = run.flags.find("tokenizer-type");
  std::string name = told != nullptr      ? *told
                     : run.pretrained     ? std::string(run.pretrained->config().family.name())
                     : !elsewhere.empty() ? elsewhere
                     : !llama.empty()     ? "llama"
                     : type != nullptr    ? family_of_tokenizer(run, *type)
                                          : "";
  if (!llama.empty() && name != "llama")
    run.problems.add(text(llama, llama.find(',') == std::string::npos ? " is" : " are",
                          " of family llama, and the model is of family ", name,
                          "; leave out what does not hold"));
  const bool is_told = told != nullptr || run.pretrained ||
                       run.flags.find(kPretrained) != nullptr || run.flags.tells("init-from") ||
                       run.told_elsewhere || run.has_loaded_model();
  if (name.empty() && !is_told && run.whose == FlagsOf::Command)
    run.problems.add(
        "which model? give --pretrained-model-name-or-path NAME, or a --tokenizer-type "
        "that says so (GPT2BPETokenizer gpt2, Llama2Tokenizer llama, "
        "BertWordPieceLowerCase bert), or --family");
  if (!name.empty() && !is_told) run.flags.set("family", {name}, "--family");
  const ModelFamily* out = nullptr;
  if (!name.empty())
    Problems().gather([&] { out = &find_model(name, run.families); });  // configure() says it too
  return out;
}

/// --max-position-embeddings, which models without learned positions have none of.
void take_positions(AskedRun& run, const ModelFamily* family) {
  const std::optional<std::int64_t> positions = run.flags.count("max-position-embeddings"),
                                    length = run.flags.count("seq-length");
  if (!positions) return;
  if (length && *length > *positions) {
    run.problems.add(text("--max-position-embeddings ", *positions, " is less than --seq-length ",
                          *length, "; give at least as many positions as a sample has tokens"));
    run.problems.refuse("positions");
    run.problems.refuse("context");
    return;
  }
  if (family == nullptr || reads_field(*family, "positions"))
    run.flags.set("positions", {text(*positions)}, "--max-position-embeddings");
}

void take_encoder_length(AskedRun& run, const ModelFamily* family) {
  const std::optional<std::int64_t> length = run.flags.count("encoder-seq-length");
  if (!length) return;
  const bool has_decoder = family != nullptr && reads_field(*family, "source-context");
  run.flags.set(has_decoder ? "source-context" : "context", {text(*length)},
                "--encoder-seq-length");
}

/// Switches about what the family lacks anyway, as biases of LLaMA.
void forget_unread(AskedRun& run, const ModelFamily* family) {
  if (family == nullptr) return;
  for (const auto& [flag, field] :
       {std::pair("disable-bias-linear", "bias"),
        std::pair("untie-embeddings-and-output-weights", "tied-head")}) {
    if (run.flags.on(flag) && !reads_field(*family, field)) run.flags.forget(field);
  }
}

void take_tokenizer(AskedRun& run) {
  const std::string* const type = run.flags.find("tokenizer-type");
  if (type != nullptr) run.flags.set("tokenizer-type", {*type}, "--tokenizer-type");
}

void take_optimizer(AskedRun& run) {
  const std::string* const name = run.flags.find("optimizer");
  if (name != nullptr)
    run.flags.set("optimizer", {*name == "adam" ? "adamw" : *name}, "--optimizer");
}

}  // namespace

void take_model_flags(AskedRun& run) {
  open_pretrained(run);
  const ModelFamily* const family = take_family(run);
  take_positions(run, family);
  take_encoder_length(run, family);
  forget_unread(run, family);
  take_tokenizer(run);
  take_optimizer(run);
}

}  // namespace tessera
