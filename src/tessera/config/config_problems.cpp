/// What is wrong with a configuration, as far as it can be known without reading a file.

#include <algorithm>

#include "tessera/base/divisors.h"
#include "tessera/base/text.h"
#include "tessera/config/config.h"
#include "tessera/config/family_fields.h"
#include "tessera/config/fields.h"
#include "tessera/config/memory_cap.h"
#include "tessera/config/row_fields.h"
#include "tessera/config/run_needs.h"
#include "tessera/models/layer.h"
#include "tessera/tokenizers/byte_tokens.h"

namespace tessera {

namespace {

const Problems::Fields kParts = {"data-parallel-size", "devices", "tensor-model-parallel-size",
                                 "context-parallel-size", "pipeline-model-parallel-size"};
const Problems::Fields kDataParallel = {
    "global-batch-size",           "micro-batch-size",           "devices",
    "data-parallel-size",          "tensor-model-parallel-size", "context-parallel-size",
    "pipeline-model-parallel-size"};

void find_parts_problem(const RunConfig& config, Problems& problems);
void find_batch_problems(const RunConfig& config, Problems& problems);
void find_sample_group_problems(const RunConfig& config, Problems& problems);
void find_eval_texts_problems(const RunConfig& config, const ModelConfig& model,
                              Problems& problems);
void find_device_problems(const RunConfig& config, Problems& problems);
void find_precision_problems(const RunConfig& config, Problems& problems);

}  // namespace

void find_problems(const RunConfig& config, Problems& problems) {
  ModelConfig model = config.model;
  if (model.vocabulary == 0) {  // the data will tell, and which ids there are
    model.vocabulary = 16;
    model.special_tokens.clear();
  }
  if (model.context == 0 && is_of_rows(model)) {  // the longest sample will tell
    const std::int64_t usual = ModelConfig().context;
    model.context = model.positions > 0 ? std::min(model.positions, usual) : usual;
  }
  const FieldProblems of_model = tessera::problems(model);
  problems.add(of_model);
  find_unread_fields(config, problems);
  if (of_model.empty()) {
    problems.gather([&] { check_step_sizes(model, config.global_batch_size); },
                    {"global-batch-size", "layers", "decoder-layers", "width", "ffn-width",
                     "context", "source-context", "vocab-size"});
    if (config.sample_every > 0 && family_task(model).writes == Writes::Nothing)
      problems.add(text("sample-every ", config.sample_every, " does nothing with family ",
                        model.family, ", which writes no text; give sample-every 0"),
                   {"sample-every", "family"});
    if (config.eval_texts > 0) find_eval_texts_problems(config, model, problems);
  }
  const TokenizerChoice tokenizer = tokenizer_choice(config);
  if (!tokenizer.none()) {
    if (config.vocabulary != VocabularyKind::Tokenizer)
      problems.add(text("tokenizer is '", name_of(tokenizer), "' but vocabulary is ",
                        to_text(config.vocabulary), "; give one"),
                   {"tokenizer", "vocabulary"});
    problems.gather([&] { require_complete(tokenizer); },
                    {"tokenizer", "tokenizer-type", "vocab-file", "merge-file", "vocab-extra-ids"});
  } else if (config.vocab_extra_ids > 0) {
    problems.add(text("vocab-extra-ids ", config.vocab_extra_ids, " does nothing without a ",
                      "tokenizer; give one, like --tokenizer-type BertWordPieceCase --vocab-file ",
                      "vocab.txt"),
                 {"vocab-extra-ids"});
  }
  if (tokenizer.none() && config.vocabulary == VocabularyKind::Tokenizer)
    problems.add(
        "vocabulary is tokenizer, but no tokenizer is given; give its file or folder, like "
        "--tokenizer-name-or-path gpt2/tokenizer.json",
        {"tokenizer", "vocabulary"});
  find_row_problems(config, problems);
  const std::int64_t least = vocabulary_for(config.model, kByteTokens);
  if (config.vocabulary == VocabularyKind::Bpe && config.model.vocabulary < least)
    problems.add(text("vocab-size ", config.model.vocabulary,
                      " has no room for the base of vocabulary bpe, ", kByteTokens, " bytes and ",
                      least - kByteTokens, " special tokens of ",
                      whose_special_tokens(config.model), "; give at least ", least, ", like 8000"),
                 {"vocab-size", "vocabulary", "family", "task"});
  problems.add(tessera::problems(config.optimizer));
  problems.gather([&] { parse_split(config.split); }, {"split"});
  if (of_model.empty() && config.model.context > 0)
    problems.gather([&] { bucket_lengths(config); },
                    {"bucket-lengths", "context", "source-context"});

  const auto is_known = [](const Field& field, std::string_view word) {
    return std::ranges::find(field.words, word) != field.words.end();
  };
  const auto has_known_word = [&](std::string_view name) {
    const Field& field = *find_field(name).field;
    return is_known(field, get_text(field, config));
  };
  for (const Field& field : fields()) {
    if (field.words.empty()) continue;
    const std::string word = get_text(field, config);
    if (!is_known(field, word))
      problems.add(text(field.name, " is '", word, "'; it can be ", join(field.words)),
                   {field.name});
  }
  find_precision_problems(config, problems);
  find_device_problems(config, problems);
  problems.gather([&] { parse_memory_cap(config.memory_cap); }, {"memory-cap"});
  const bool in_file = config.remote_device == kRemoteFile;
  if (in_file && config.offload_folder.empty())
    problems.add(
        text("remote-device ", kRemoteFile, " needs a folder for its file; give offload-folder"),
        {"remote-device", "offload-folder"});
  if (!in_file && has_known_word("remote-device") && !config.offload_folder.empty())
    problems.add(text("offload-folder ", config.offload_folder, " does nothing with remote-device ",
                      config.remote_device, "; give remote-device ", kRemoteFile,
                      ", or leave the folder out"),
                 {"remote-device", "offload-folder"});
  const ParallelConfig& parallel = config.parallel;
  ParallelConfig chosen = parallel;
  const bool given = config.given.contains("recompute-granularity") ||
                     config.given.contains("checkpoint-activations");
  if (config.memory_cap != "none" && !given && parallel.recompute == Recompute::None)
    chosen.recompute = Recompute::Full;  // a cap chooses, also for some layers
  if (!has_known_word("recompute-granularity"))
    chosen.recompute = Recompute::Full;  // whether there is any is not known
  problems.add(tessera::problems(chosen, model));
  if (parallel.tensor < 1 || parallel.context < 1 || parallel.pipeline < 1 || parallel.data() < 1)
    return;
  if (parallel.devices % (parallel.tensor * parallel.context * parallel.pipeline) != 0) return;
  find_parts_problem(config, problems);
  find_batch_problems(config, problems);
  find_sample_group_problems(config, problems);
}

namespace {

/// Two kinds of 16-bit floats; sums in floats that are neither f32 nor those of the run.
void find_precision_problems(const RunConfig& config, Problems& problems) {
  const auto written = [&](std::string_view name) {
    const auto found = config.given.find(name);
    return found == config.given.end() ? std::string(name) : found->second;
  };
  for (const auto& [name, asked] :
       {std::pair("bf16", config.bf16), std::pair("mixed-precision", config.mixed_precision)}) {
    if (asked && config.fp16)
      problems.add(text(written(name), " computes in bf16, but ", written("fp16"),
                        " in f16; give one, or cancel one: no-fp16, no-", name),
                   {name, "fp16"});
  }
  const std::optional<Precision> precision = precision_of(config);
  const DType computed = precision ? precision->compute : DType::F32, sums = sums_of(config);
  if (sums != DType::F32 && sums != computed)
    problems.add(text("reduce-dtype ", sums, ", but the run computes in ", computed,
                      "; gradients can be summed in f32 or in the run's 16-bit floats: ",
                      precision ? text("give reduce-dtype f32 or ", computed)
                                : text("leave reduce-dtype out, or add ",
                                       sums == DType::BF16 ? "bf16" : "fp16")),
                 {"reduce-dtype", "bf16", "fp16", "mixed-precision"});
}

void find_device_problems(const RunConfig& config, Problems& problems) {
  const std::string& device = config.device;
  if (config.tf32 && device == kProcessors)
    problems.add(text("tf32 is for products on GPUs, and device is ", device,
                      "; leave tf32 out, or give device ", kPjrt, "cuda"),
                 {"tf32", "device"});
  if (device == kProcessors) return;
  if (plugin_of(config).empty()) {
    problems.add(text("device is '", device, "'; it can be cpu, or ", kPjrt,
                      " with the name or the file of a plugin, like ", kPjrt, "cuda"),
                 {"device"});
    return;
  }
  if (config.remote_device == kRemoteFile)
    problems.add(text("remote-device ", kRemoteFile, " keeps tensors in a file, which device ",
                      device, " cannot; give remote-device ", kRemoteMemory, ", or leave it out"),
                 {"remote-device", "device"});
  if (!config.profile.empty())
    problems.add(text("profile records the kernels of processors, and device is ", device,
                      "; leave one of the two out"),
                 {"profile", "device"});
}

/// data-parallel-size leaves devices over, and they repeat what others compute: each as often.
void find_parts_problem(const RunConfig& config, Problems& problems) {
  const ParallelConfig& p = config.parallel;
  const std::int64_t parts = parallel_parts(config);
  if (parts < 1 || p.devices % parts == 0) return;
  const std::string product =
      text("data-parallel-size ", config.data_parallel, " x pipeline ", p.pipeline, " x tensor ",
           p.tensor, " x context parallel size ", p.context, " makes ", parts, " parts");
  if (parts > p.devices) {
    problems.add(text(product, ", but devices is ", p.devices,
                      "; lower one of the sizes, or give devices ", parts),
                 kParts);
  } else {
    problems.add(
        text(product, ", of which devices ", p.devices, " is not a multiple; give devices ",
             p.devices / parts * parts, " or ", (p.devices / parts + 1) * parts),
        kParts);
  }
}

void find_batch_problems(const RunConfig& config, Problems& problems) {
  const std::int64_t data = config.parallel.data(), global = config.global_batch_size,
                     micro = config.micro_batch_size;
  if (global < data) {
    problems.add(text("global-batch-size ", global, " is less than the ", data,
                      " data parallel devices, some of which would have no sample; give at least ",
                      data, ", or fewer devices"),
                 kDataParallel);
  } else if (data > 1) {
    // Devices may have unequal shares of a step that is computed at once.
    if (micro * data >= global || global % (micro * data) == 0) return;
    const std::string remedy =
        global % data == 0
            ? text("micro-batch-size can be ", divisors(global / data))
            : text(
                  "micro-batches need equal shares: give micro-batch-size 0, or global-batch-size ",
                  global / data * data, " or ", (global / data + 1) * data);
    problems.add(
        text("micro-batch-size ", micro, " x ", data,
             " data parallel devices does not divide global-batch-size ", global, "; ", remedy),
        kDataParallel);
  } else if (micro > global) {
    problems.add(text("micro-batch-size ", micro, " is above global-batch-size ", global,
                      "; lower the first or raise the second"),
                 kDataParallel);
  } else if (micro > 0 && global % micro != 0) {
    std::int64_t below = micro, above = micro;
    while (below > 1 && global % below != 0) --below;
    while (above < global && global % above != 0) ++above;
    problems.add(
        text("micro-batch-size ", micro, " does not divide global-batch-size ", global,
             "; nearest are micro-batch-size ", below, " or ", above, ", or global-batch-size ",
             global / micro * micro, " or ", (global / micro + 1) * micro),
        kDataParallel);
  }
}

/// Of samples that share a loss of routers none is in another micro-batch, nor in another validation.
void find_sample_group_problems(const RunConfig& config, Problems& problems) {
  const std::int64_t samples = config.model.experts.samples, data = config.parallel.data(),
                     micro = config.micro_batch_size, global = config.global_batch_size;
  if (!has_experts(config.model) || samples < 2 || micro < 1 || data < 1) return;
  const bool at_once = micro * data >= global;
  const std::int64_t together = at_once ? global : micro * config.parallel.experts;
  if (together % samples == 0 && micro * data % samples == 0) return;
  Problems::Fields fields = kDataParallel;
  fields.insert(fields.end(), {"moe-aux-loss-samples", "expert-model-parallel-size"});
  problems.add(text("moe-aux-loss-samples ", samples, " does not divide the ",
                    together % samples == 0 ? text(micro * data, " samples of a validation's batch")
                    : at_once               ? text(together, " samples of a step")
                                            : text(together, " samples of a micro-batch on ",
                                                   config.parallel.experts, " expert parallel devices"),
                    "; give a divisor of that, or another micro-batch-size"),
               fields);
}

/// `model`: as sizes of the data would complete it.
void find_eval_texts_problems(const RunConfig& config, const ModelConfig& model,
                              Problems& problems) {
  const std::string nothing = text("eval-texts ", config.eval_texts, " does nothing ");
  if (family_task(model).writes != Writes::TextsFromSources) {
    problems.add(text(nothing, "with family ", config.model.family,
                      ", which writes no text from a source; give eval-texts 0"),
                 {"eval-texts", "family"});
  } else if (!validates(config, task_of(model))) {
    problems.add(text(nothing,
                      "without a validation; give eval-every or eval-at-end, with held-out "
                      "or valid-data, or give eval-texts 0"),
                 {"eval-texts", "eval-every", "eval-at-end", "held-out", "valid-data"});
  }
}

}  // namespace

}  // namespace tessera
