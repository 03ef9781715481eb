/// What is wrong with a configuration, as far as it can be known without reading a file.

#include <algorithm>

#include "tessera/base/divisors.h"
#include "tessera/base/text.h"
#include "tessera/train/config.h"
#include "tessera/train/family_fields.h"
#include "tessera/train/fields.h"
#include "tessera/train/memory_cap.h"
#include "tessera/train/programs.h"

namespace tessera {

namespace {

/// Whether `problem` names one of these fields, as a word of its own.
bool names_one_of(const std::set<std::string, std::less<>>& fields, std::string_view problem) {
  const auto in_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  for (std::size_t begin = 0; begin < problem.size(); ++begin) {
    std::size_t end = begin;
    while (end < problem.size() && in_name(problem[end])) ++end;
    if (fields.contains(problem.substr(begin, end - begin))) return true;
    begin = end;
  }
  return false;
}

void find_all_problems(const RunConfig& config, Problems& problems);
void find_batch_problems(const RunConfig& config, Problems& problems);
void find_eval_texts_problems(const RunConfig& config, const Task& task, Problems& problems);

}  // namespace

void find_problems(const RunConfig& config, Problems& problems) {
  Problems all;
  find_all_problems(config, all);
  for (const Error& problem : all.list()) {
    if (!names_one_of(config.refused, problem.what())) problems.add(problem);
  }
}

namespace {

void find_all_problems(const RunConfig& config, Problems& problems) {
  ModelConfig model = config.model;
  if (model.vocabulary == 0) model.vocabulary = 16;  // the data will tell
  const std::vector<std::string> of_model = tessera::problems(model);
  for (const std::string& problem : of_model) problems.add(problem);
  find_unread_fields(config, problems);
  if (of_model.empty()) {
    problems.gather([&] { check_step_sizes(model, config.global_batch_size); });
    if (config.sample_every > 0 && !task_of(model).text)
      problems.add(text("sample-every ", config.sample_every, " does nothing with family ",
                        model.family, ", which writes no text; give sample-every 0"));
    if (config.eval_texts > 0) find_eval_texts_problems(config, task_of(model), problems);
  }
  const std::int64_t least = vocabulary_for(config.model.family, Bpe::kBytes);
  if (config.vocabulary == VocabularyKind::Bpe && config.model.vocabulary < least)
    problems.add(text("vocab-size ", config.model.vocabulary,
                      " has no room for what vocabulary bpe begins with, the ", Bpe::kBytes,
                      " bytes and ", least - Bpe::kBytes, " special tokens of family ",
                      config.model.family, "; give at least ", least,
                      ": how many tokens there are to be, like 8000"));
  for (const std::string& problem : tessera::problems(config.optimizer)) problems.add(problem);

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
      problems.add(text(field.name, " is '", word, "'; it can be ", join(field.words)));
  }
  problems.gather([&] { parse_memory_cap(config.memory_cap); });
  const bool in_file = config.remote_device == kRemoteFile;
  if (in_file && config.offload_folder.empty())
    problems.add(
        text("remote-device ", kRemoteFile, " needs a folder for its file; give offload-folder"));
  if (!in_file && has_known_word("remote-device") && !config.offload_folder.empty())
    problems.add(text("offload-folder ", config.offload_folder, " does nothing with remote-device ",
                      config.remote_device, "; give remote-device ", kRemoteFile,
                      ", or leave the folder out"));
  const ParallelConfig& parallel = config.parallel;
  ParallelConfig chosen = parallel;
  const bool told = config.asked_for.contains("recompute-granularity") ||
                    config.asked_for.contains("checkpoint-activations");
  if (config.memory_cap != "none" && !told && parallel.recompute == Recompute::None)
    chosen.recompute = Recompute::Full;  // a cap chooses, also for some layers
  if (!has_known_word("recompute-granularity"))
    chosen.recompute = Recompute::Full;  // whether there is any is not known
  for (const std::string& problem : tessera::problems(chosen, model)) problems.add(problem);
  if (parallel.tensor < 1 || parallel.context < 1 || parallel.pipeline < 1 || parallel.data() < 1)
    return;
  if (parallel.devices % (parallel.tensor * parallel.context * parallel.pipeline) != 0) return;
  find_batch_problems(config, problems);
}

void find_batch_problems(const RunConfig& config, Problems& problems) {
  const std::int64_t data = config.parallel.data(), global = config.global_batch_size,
                     micro = config.micro_batch_size;
  if (global < data) {
    problems.add(text("global-batch-size ", global, " is less than the ", data,
                      " data parallel devices, some of which would have no sample; give at least ",
                      data, ", or fewer devices"));
  } else if (data > 1) {
    // Devices may have unequal shares of a step that is computed at once.
    if (micro * data >= global || global % (micro * data) == 0) return;
    const std::string remedy =
        global % data == 0
            ? text("micro-batch-size can be ", divisors(global / data))
            : text(
                  "without equal shares there are no micro-batches: give micro-batch-size 0, or "
                  "global-batch-size ",
                  global / data * data, " or ", (global / data + 1) * data);
    problems.add(text("micro-batch-size ", micro, " x ", data,
                      " data parallel devices does not divide global-batch-size ", global, "; ",
                      remedy));
  } else if (micro > global) {
    problems.add(text("micro-batch-size ", micro, " is above global-batch-size ", global,
                      "; lower the first or raise the second"));
  } else if (micro > 0 && global % micro != 0) {
    std::int64_t below = micro, above = micro;
    while (below > 1 && global % below != 0) --below;
    while (above < global && global % above != 0) ++above;
    problems.add(text("micro-batch-size ", micro, " does not divide global-batch-size ", global,
                      "; nearest are micro-batch-size ", below, " or ", above,
                      ", or global-batch-size ", global / micro * micro, " or ",
                      (global / micro + 1) * micro));
  }
}

void find_eval_texts_problems(const RunConfig& config, const Task& task, Problems& problems) {
  const std::string nothing = text("eval-texts ", config.eval_texts, " does nothing ");
  if (!task.text || task.text->source == 0) {
    problems.add(text(nothing, "with family ", config.model.family,
                      ", which writes no text from a source; give eval-texts 0"));
  } else if (!wanted_programs(config).evaluate) {
    problems.add(text(nothing,
                      "without a validation; give eval-every or eval-at-end, with held-out "
                      "or valid-data, or give eval-texts 0"));
  }
}

}  // namespace

}  // namespace tessera
