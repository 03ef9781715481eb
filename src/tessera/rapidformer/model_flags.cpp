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
    require(!name->empty(), "--", kPretrained, " is empty; name a folder or a model");
    const std::string folder = model_folder(*name);
    if (PretrainedModel::is_at(folder)) {
      run.pretrained.emplace(PretrainedModel::open(
          folder, {.weights = OpenPretrained::Weights::IfThere, .task_given = true}));
    } else if (run.pretraining) {
      throw with_download_hint(
          Error(Fault::Usage, text("--", kPretrained, " ", *name, ": no folder of that name has a ",
                                   "config.json")),
          *name);
    }
  });
  if (!run.pretraining || run.whose != FlagsOf::Command)
    run.flags.set("init-from", {*name}, text("--", kPretrained));
}

/// The family that a type of tokenizer stands for.
std::string family_of_tokenizer(const AskedRun& run, const std::string& type) {
  if (type == "Llama2Tokenizer") return "llama";
  if (!type.starts_with("BertWordPiece"))
    return type.starts_with("GPT") || type.starts_with("SentencePiece") ? "gpt2" : "";
  return run.flags.count("vocab-extra-ids").value_or(0) > 0 ? "t5" : "bert";
}

/// A flag that says what layers are made of.
struct LayerFlag {
  const char *name, *value;  // value nullptr: a switch
  bool (*is_so)(const TransformerLayer& layer);
};
constexpr LayerFlag kLayerFlags[] = {
    {"position-embedding-type", "rope", [](const TransformerLayer& layer) { return layer.rotary; }},
    {"use-rotary-position-embeddings", nullptr,
     [](const TransformerLayer& layer) { return layer.rotary; }},
    {"swiglu", nullptr,
     [](const TransformerLayer& layer) { return layer.feed_forward == FeedForward::SwiGlu; }},
    {"normalization", "RMSNorm",
     [](const TransformerLayer& layer) { return layer.norm == NormKind::Rms; }}};

/// What these flags say.
struct SaidOfLayers {
  std::string flags;                  // as they were given; empty: none was
  std::vector<std::string> families;  // that are so, Megatron-LM's first
};
SaidOfLayers said_of_layers(const AskedRun& run) {
  SaidOfLayers out;
  std::vector<const ModelFamily*> fit(model_families().begin(), model_families().end());
  for (const LayerFlag& flag : kLayerFlags) {
    const std::string* const value = run.flags.find(flag.name);
    const bool given =
        flag.value == nullptr ? run.flags.on(flag.name) : value != nullptr && *value == flag.value;
    if (!given) continue;
    out.flags += text(out.flags.empty() ? "" : ", ", run.flags.written(flag.name));
    std::erase_if(fit, [&](const ModelFamily* family) { return !flag.is_so(family->layer); });
  }
  if (run.flags.typed("num-experts")) {
    out.flags += text(out.flags.empty() ? "" : ", ", run.flags.written("num-experts"));
    std::erase_if(fit, [](const ModelFamily* one) { return !reads_field(*one, "num-experts"); });
  }
  std::ranges::stable_partition(fit, &ModelFamily::megatron);
  for (const ModelFamily* family : fit) out.families.emplace_back(family->name);
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
  if (!run.given_elsewhere) return "";
  const RunConfig config = run.so_far();
  const bool given = !config.preset.empty() || !config.defaulted.contains("family");
  return given ? std::string(config.model.family.name()) : "";
}

/// Of the folder, of --family, or what tokenizer and layers say; nullptr: not known.
const ModelFamily* take_family(AskedRun& run) {
  refuse_words(run, "position-embedding-type", {"rope", "learned_absolute"});
  refuse_words(run, "normalization", {"LayerNorm", "RMSNorm"});
  const SaidOfLayers said = said_of_layers(run);
  const std::string* const given = run.flags.find("family");
  const std::string elsewhere = family_elsewhere(run);
  const std::string* const type = run.flags.find("tokenizer-type");
  std::string name = given != nullptr     ? *given
                     : run.pretrained     ? std::string(run.pretrained->config().family.name())
                     : !elsewhere.empty() ? elsewhere
                     : !said.families.empty() && !said.flags.empty() ? said.families.front()
                     : type != nullptr ? family_of_tokenizer(run, *type)
                                       : "";
  if (!said.flags.empty() && said.families.empty())
    run.problems.add(text("no family has all of ", said.flags, "; remove the wrong flag"));
  else if (!said.flags.empty() && std::ranges::find(said.families, name) == said.families.end())
    run.problems.add(text(said.flags, said.flags.find(',') == std::string::npos ? " is" : " are",
                          " of family ", join(said.families, " or "),
                          ", and the model is of family ", name, "; remove the wrong flag"));
  const bool is_given = given != nullptr || run.pretrained ||
                        run.flags.find(kPretrained) != nullptr || run.flags.tells("init-from") ||
                        run.given_elsewhere || run.has_loaded_model();
  if (name.empty() && !is_given && run.whose == FlagsOf::Command)
    run.problems.add(
        "no model given; give --pretrained-model-name-or-path NAME, or a --tokenizer-type that "
        "selects one (GPT2BPETokenizer gpt2, Llama2Tokenizer llama, "
        "BertWordPieceLowerCase bert), or --family");
  if (!name.empty() && !is_given) run.flags.set("family", {name}, "--family");
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

void take_experts(AskedRun& run) {
  const std::vector<std::string> experts = run.flags.find_all("num-experts");
  if (experts.size() > 1)
    run.problems.add(text(run.flags.written("num-experts"),
                          " has a number for each layer, and here all layers have as many experts; "
                          "give one number"));
  else if (experts.size() == 1)
    run.flags.set("num-experts", experts, "--num-experts");
  refuse_words(run, "mlp-type", {"standard", "residual"});
  refuse_words(run, "moe-token-dispatcher-type", {"allgather", "alltoall", "flex"});
  if (const std::string* const type = run.flags.find("mlp-type"))
    run.flags.set("moe-use-residual", {*type == "residual" ? "true" : "false"}, "--mlp-type");
  constexpr const char* kBalancing = "moe-router-load-balancing-type";
  refuse_words(run, kBalancing, {"seq_aux_loss", "aux_loss", "none"});
  const std::string* const balancing = run.flags.find(kBalancing);
  if (balancing == nullptr) return;
  const std::string source = text("--", kBalancing);
  if (*balancing == "none") {
    run.flags.set("moe-aux-loss-coeff", {"0"}, source);
  } else if (*balancing == "aux_loss") {
    run.flags.set("moe-aux-loss-samples", {text(run.flags.count("micro-batch-size").value_or(1))},
                  source);
  }
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
  take_experts(run);
  forget_unread(run, family);
  take_tokenizer(run);
  take_optimizer(run);
}

}  // namespace tessera
