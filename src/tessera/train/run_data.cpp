#include "tessera/train/run_data.h"

#include <algorithm>
#include <new>

#include "tessera/base/format.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/question_rows.h"
#include "tessera/data/unknown_tokens.h"
#include "tessera/models/family.h"
#include "tessera/sources/choice_columns.h"
#include "tessera/sources/data_source.h"
#include "tessera/sources/row_data.h"
#include "tessera/sources/sample_choices.h"
#include "tessera/tokenizers/byte_tokens.h"
#include "tessera/train/programs.h"

namespace tessera {

namespace {

bool draws(DrawSamples draw, const RunConfig& config) {
  return draw == DrawSamples::Yes || !data_source(config).has_index;
}

/// That there are samples to train and to validate on; adds their notices.
void check_samples(PreparedRun& run, Problems& problems) {
  const RunConfig& c = run.config;
  const Task& task = run.task;
  const auto look_at = [&](const Samples& samples) {
    if (!samples.notice().empty()) run.notices.push_back(samples.notice());
  };
  std::string of_training;
  const auto note_passes = [&](std::int64_t samples) {
    if (samples < 1 || c.steps < 1 || c.global_batch_size <= samples) return;
    const double passes = static_cast<double>(c.global_batch_size) / static_cast<double>(samples);
    run.notices.push_back(text("a step takes ", c.global_batch_size, " samples, and there ",
                               samples == 1 ? "is " : "are ", samples,
                               " to train on, so each step makes ", format("%.3g", passes),
                               " passes over the data; give a smaller global-batch-size, or more "
                               "data"));
  };
  problems.gather([&] {
    try {
      const std::unique_ptr<Samples> samples = task.train_samples(*run.data, sample_choices(c));
      look_at(*samples);
      note_passes(samples->size());
    } catch (const Error& error) {
      of_training = error.what();
      throw;
    }
  });
  if (validates(c, task))
    problems.gather(
        [&] {
          try {
            look_at(*task.valid_samples(*run.data, valid_choices(c)));
          } catch (const Error& error) {
            if (!c.valid_data.empty() || of_training == error.what()) throw;
            throw error.with(data_source(c).without_held_out(c));
          }
        },
        {"held-out"});
  else if (c.keep_best)
    run.notices.push_back(
        "keep-best is on, and this run validates nothing, so no checkpoint is known as the best; "
        "give valid-data or held-out, with eval-every or eval-at-end");
}

/// That the model has a row for each token.
void check_vocabulary(PreparedRun& run, Problems& problems) {
  const RunConfig& c = run.config;
  const std::int64_t known = run.data->vocabulary.size(),
                     least = vocabulary_for(c.model, run.data->vocabulary);
  const bool learned = c.vocabulary == VocabularyKind::Bpe && !run.from && !run.init;
  if (learned && c.model.vocabulary > least)
    run.notices.push_back(text(
        "the vocabulary has ", known, " tokens instead of ", c.model.vocabulary - (least - known),
        ", because no other pair of tokens appears twice in the text; vocab-size ", least,
        " gives the same model without unused rows"));
  // A resumed run keeps its vocabulary; of a learned one find_problems has told.
  const bool given = c.vocabulary == VocabularyKind::Bpe &&
                     c.model.vocabulary < vocabulary_for(c.model, kByteTokens);
  const VocabularyKind kind = run.data->vocabulary.kind();
  // Of a folder's model that has fewer rows than its tokenizer has tokens, only ids that come
  // count.
  const bool begins_with_weights = !run.from && !c.init_from.empty();
  const bool may_lack = begins_with_weights && kind == VocabularyKind::Tokenizer && least == known;
  if (may_lack && c.model.vocabulary < least) {
    run.notices.push_back(text("the tokenizer has ", known, " tokens and the model of '",
                               c.init_from, "' ", c.model.vocabulary, " rows; texts with an id of ",
                               c.model.vocabulary, " or more are refused"));
  } else if (!run.from && !given && c.model.vocabulary < least) {
    problems.add(text(
        "vocab-size ", c.model.vocabulary, " is less than the ", known, " ",
        kind == VocabularyKind::Bpe || kind == VocabularyKind::Tokenizer ? "tokens" : to_text(kind),
        kind == VocabularyKind::Tokenizer ? " of the tokenizer" : " of the data",
        least > known
            ? text(" and the ", least - known, " special tokens of ", whose_special_tokens(c.model))
            : "",
        "; give 0 or at least ", least));
  }
}

}  // namespace

Dataset load_test_data(const RunConfig& config, const Dataset& trained, bool reads_labels) {
  return data_source(config).load_test(config, trained, reads_labels);
}

std::optional<Dataset> load_data(const RunConfig& config, const KnownModel& model,
                                 Problems& problems) {
  std::optional<Dataset> out;
  if (config.program_data.empty() && config.data.empty()) {
    problems.add("data is missing; give a text file, like --data input.txt", Fault::Usage);
    return out;
  }
  problems.gather([&] {
    const DataSource& source = data_source(config);
    if (!source.reads_files) {
      out = source.load(config, model);
      return;
    }
    const bool no_tokenizer = model.vocabulary == nullptr &&
                              config.vocabulary == VocabularyKind::Tokenizer &&
                              tokenizer_choice(config).none();
    const bool no_columns = (is_of_tables(config.model) && config.label_column.empty()) ||
                            (is_of_groups(config.model) && config.text_column.empty()) ||
                            (is_of_choices(config.model) && !has_choice_columns(config));
    if (no_tokenizer || no_columns) return;  // reported before
    try {
      out = source.load(config, model);
    } catch (const std::bad_alloc&) {
      fail(Fault::Resource, "out of memory while reading data '", config.data.front(), "', which ",
           "is held in memory; give less of it, or token files (tessera preprocess_data), ",
           "which are not, or raise the limit (ulimit -v, cgroup)");
    }
  });
  return out;
}

std::string digest_of(const RunConfig& config, VocabularyKind kind) {
  try {
    const DataSource& source = data_source(config);
    return source.digest == nullptr ? "" : source.digest(config, kind);
  } catch (const Error&) {  // reported before
    return "";
  }
}

bool complete_model(RunConfig& config, const Dataset& data) {
  take_special_tokens(config.model, data.vocabulary);
  data_source(config).complete(config, data);
  const bool open = config.model.vocabulary == 0;
  if (open) config.model.vocabulary = vocabulary_for(config.model, data.vocabulary);
  return open || is_of_rows(config.model);
}

std::string ids_digest(const Dataset& data) {
  if (data.find_texts() == nullptr) return "";
  const auto ids = data.texts().tokens.train();
  return ids.empty() ? "" : hash128_text(std::as_bytes(std::span(ids)));
}

void check_data(PreparedRun& run, Problems& problems, DrawSamples draw) {
  const RunConfig& c = run.config;
  if (!tessera::problems(c.model).empty()) return;  // reported before
  Problems of_buckets;
  if (!of_buckets.gather([&] { bucket_lengths(c); })) return;  // reported before
  const Task& task = run.task;
  const std::vector<DataKind> taken = data_taken(task);
  if (std::ranges::find(taken, run.data->kind()) == taken.end()) {
    std::vector<std::string> known;
    for (const DataKind kind : taken) known.emplace_back(to_text(kind));
    problems.add(text("family ", c.model.family, " trains on ", join(known, " or "), ", but data '",
                      c.data.front(), "' is ", to_text(run.data->kind()),
                      "; give another family, or other data"),
                 {"family", "data"});
    return;
  }
  if (!rows_fit(*run.data, c, task, problems)) return;
  for (const std::string& notice : {run.data->notice, notice_of_unknown_tokens(*run.data)}) {
    if (!notice.empty()) run.notices.push_back(notice);
  }
  if (draws(draw, c)) check_samples(run, problems);
  check_vocabulary(run, problems);
}

void require_ids_of(const Dataset& data, std::int64_t vocabulary) {
  if (const Texts* const texts = data.find_texts())
    require_ids(texts->tokens.all(), vocabulary, name_of(texts->files));
  if (const EncodedQuestions* const questions = data.questions())
    require_question_ids(*questions, vocabulary, name_of(questions->files));
}

void check_ids_and_take_test(PreparedRun& run, Problems& problems, DrawSamples draw) {
  const RunConfig& c = run.config;
  problems.gather([&] { require_ids_of(*run.data, c.model.vocabulary); });
  if (c.test_data.empty()) return;
  problems.gather(
      [&] {
        try {
          run.test = std::make_shared<const Dataset>(load_test_data(c, *run.data));
        } catch (const Error& error) {
          throw error.with("in the data to test on at the end of the run (test-data)");
        }
        const Dataset& test = *run.test;
        require_ids_of(test, c.model.vocabulary);
        if (!draws(draw, c)) return;
        const std::unique_ptr<Samples> samples = run.task.valid_samples(test, test_choices(c));
        for (const std::string& notice :
             {test.notice, notice_of_unknown_tokens(test), samples->notice()}) {
          if (!notice.empty()) run.notices.push_back(text("of test-data: ", notice));
        }
        if (test.unlabelled)
          run.notices.push_back(text("test-data '", c.test_data.front(), "' has no labels: ",
                                     "they are predicted at the end of the run, but not scored"));
      },
      {"test-data"});
}

}  // namespace tessera
