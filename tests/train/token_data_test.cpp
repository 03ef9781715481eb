/// Runs on token files.

#include "tessera/sources/token_data.h"

#include <gtest/gtest.h>

#include <map>

#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/files/file.h"
#include "tessera/models/family.h"
#include "tessera/sources/sample_choices.h"
#include "tessera/token_files/indexed_dataset_writer.h"
#include "train/tiny_run.h"

namespace tessera {

namespace {

constexpr std::int32_t kEndOfDocument = 31;

class TokenRun : public TrainerTest {
 protected:
  TokenRun() {
    IndexedDatasetWriter writer(prefix(), TokenType::U16);
    for (std::int32_t d = 0; d < 60; ++d) {
      std::vector<std::int32_t> ids;
      for (std::int32_t i = 0; i < 20 + d % 7; ++i) ids.push_back((d * 5 + i * i) % kEndOfDocument);
      ids.push_back(kEndOfDocument);
      writer.add_sequence(ids);
      writer.end_document();
    }
    writer.finish();
  }
  std::string prefix() const { return folder_ + "/tokens"; }

  RunConfig on_tokens(const std::string& output) const {
    RunConfig out = config(output);
    out.data = {prefix()};
    out.split = "80,20";
    out.model.vocabulary = 32;
    out.eval_iters = 2;
    return out;
  }

  /// All problems of a configuration, in one text.
  static std::string problems_of(const RunConfig& config) {
    Problems problems;
    prepare_run(config, problems);
    std::string out;
    for (const Error& problem : problems.list()) out += text(problem.what(), "\n");
    return out;
  }
};

/// What a task's batch of `count` samples from `first` on has, by the name of the input.
std::map<std::string, std::vector<std::int32_t>> batch_of(const Task& task, const Samples& samples,
                                                          std::int64_t first, std::int64_t count) {
  std::map<std::string, std::vector<std::int32_t>> out;
  BatchInputs inputs("test");
  for (const TaskInput& input : task.inputs) {
    Shape shape{count};
    for (const std::int64_t size : input.sample) shape.push_back(size);
    auto& values = out[input.name];
    values.resize(static_cast<std::size_t>(count * input.sample[0]), -7);
    inputs.add(input.name, {input.dtype, shape, {}},
               std::as_writable_bytes(std::span(values)).data());
  }
  inputs.begin();
  samples.fill(first, count, inputs);
  inputs.require_filled();
  return out;
}

}  // namespace

TEST_F(TokenRun, GoesOnWithTheSameBits) {
  RunConfig whole = on_tokens("whole"), parts = on_tokens("parts");
  run(whole);
  parts.exit_interval = 5;
  run(parts);
  run(parts);
  parts.exit_interval = 0;
  run(parts);
  EXPECT_EQ(losses("parts"), losses("whole"));
  EXPECT_EQ(digest_of("parts/checkpoints/step-00000012"),
            digest_of("whole/checkpoints/step-00000012"));
}

TEST_F(TokenRun, IsRefusedWhereTheOrderOfSamplesWouldChange) {
  RunConfig config = on_tokens("longer");
  run(config);
  config.steps = 400;  // more passes over the data
  EXPECT_NE(problems_of(config).find("steps is 12 there and 400 here"), std::string::npos)
      << problems_of(config);
  config.allow_changes = true;
  EXPECT_EQ(problems_of(config), "");
}

TEST_F(TokenRun, AskForWhatTheyNeed) {
  const auto says = [&](const auto& change) {
    RunConfig config = on_tokens("none");
    change(config);
    return problems_of(config);
  };
  const struct {
    const char* says;
    std::string problems;
  } cases[] = {
      {"", says([](RunConfig&) {})},
      {"give vocab-size", says([](RunConfig& c) { c.model.vocabulary = 0; })},
      {"family transformer trains on texts", says([](RunConfig& c) {
         c.model = published("transformer");
         c.model.vocabulary = 40;
       })},
      {"masked sentences of token files need the files' tokenizer", says([](RunConfig& c) {
         c.model = published("bert");
         c.model.vocabulary = 40;
       })},
      {"need the token that ends a document", says([](RunConfig& c) { c.eod_mask_loss = true; })},
      {"eod-token 32 is not below vocab-size 32", says([](RunConfig& c) { c.eod_token = 32; })},
      {"seed 4294967296 is above", says([](RunConfig& c) { c.seed = std::int64_t{1} << 32; })},
      {"split 'x'", says([](RunConfig& c) { c.split = "x"; })},
      // Samples may go on into the next pass over the data, if there is one.
      {"", says([](RunConfig& c) { c.model.context = 4000; })},
      {"is longer than the data", says([](RunConfig& c) {
         c.model.context = 4000;
         c.epochs = 1;
       })},
      {"is a text, but data is token files",
       says([&](RunConfig& c) { c.valid_data = {folder_ + "/text.txt"}; })},
      {"do nothing with a text", says([&](RunConfig& c) {
         c.data = {folder_ + "/text.txt"};
         c.model.vocabulary = 0;
         c.model.reset_attention = true;
       })},
  };
  for (const auto& c : cases) {
    if (*c.says == '\0') {
      EXPECT_EQ(c.problems, "");
    }
    const std::size_t at = c.problems.find(c.says);
    EXPECT_NE(at, std::string::npos) << c.says << "\n" << c.problems;
    if (*c.says != '\0') {
      EXPECT_EQ(c.problems.find(c.says, at + 1), std::string::npos) << "told once: " << c.problems;
    }
  }
}

TEST_F(TokenRun, AnIdThatTheModelLacksEndsItWithItsPlace) {
  RunConfig config = on_tokens("lacks");
  config.model.vocabulary = 31;
  std::string says;
  try {
    run(config);
  } catch (const Error& error) {
    says = error.what();
  }
  EXPECT_NE(says.find("is 31, but the model has ids from 0 to 30"), std::string::npos) << says;
}

/// 31 letters and the end of a document.
TEST_F(TokenRun, ATokenizerTellsTheVocabularyAndTheEnd) {
  std::string vocabulary = "{";
  for (int i = 0; i < kEndOfDocument; ++i)
    vocabulary += text("\"", static_cast<char>('A' + i == '\\' ? 'z' : 'A' + i), "\":", i, ",");
  write_atomically(folder_ + "/vocab.json", vocabulary + "\"<|endoftext|>\":31}");
  write_atomically(folder_ + "/merges.txt", "#version: 0.2\n");
  RunConfig config = on_tokens("tokenizer");
  config.model.vocabulary = 0;
  config.eod_mask_loss = true;
  config.defaulted = {"vocabulary", "tokenizer", "vocab-size", "eod-token"};
  config.tokenizer_type = "GPT2BPETokenizer";
  config.vocab_file = folder_ + "/vocab.json";
  EXPECT_NE(problems_of(config).find("needs merge-file"), std::string::npos) << problems_of(config);
  config.merge_file = folder_ + "/merges.txt";
  Problems problems;
  const auto prepared = prepare_run(config, problems);
  problems.raise();
  EXPECT_EQ(prepared->config.model.vocabulary, 32);
  EXPECT_EQ(prepared->config.eod_token, kEndOfDocument);
  EXPECT_EQ(prepared->data->vocabulary.decode(std::vector<std::int32_t>{0, 1, 31}),
            "AB<|endoftext|>");
  config.exit_interval = 3;
  run(config);
  // What follows from the checkpoint alone.
  std::filesystem::remove(config.vocab_file);
  run(config);
  RunConfig defaulted = on_tokens("tokenizer");
  defaulted.defaulted = {"vocabulary", "tokenizer", "vocab-size", "eod-token"};
  defaulted.model.vocabulary = 0;
  defaulted.eod_mask_loss = true;
  run(defaulted);
  RunConfig padded = config, less = config;
  write_atomically(config.vocab_file, vocabulary + "\"<|endoftext|>\":31}");
  padded.output = less.output = folder_ + "/padded";
  padded.model.vocabulary = 64;
  less.model.vocabulary = 31;
  run(padded);
  less.output = folder_ + "/less";
  EXPECT_NE(problems_of(less).find("eod-token 31 is not below vocab-size 31"), std::string::npos)
      << problems_of(less);
}

TEST_F(TokenRun, DocumentsAreKeptApart) {
  RunConfig config = on_tokens("apart");
  config.eod_token = kEndOfDocument;
  config.eod_mask_loss = config.model.reset_positions = config.model.reset_attention = true;
  Problems problems;
  const auto prepared = prepare_run(config, problems);
  problems.raise();
  const Task task = task_of(prepared->config.model);
  const auto samples = task.train_samples(*prepared->data, sample_choices(prepared->config));
  const auto batch = batch_of(task, *samples, 3, 4);
  const auto &ids = batch.at("ids"), &labels = batch.at("labels"),
             &positions = batch.at("positions"), &first_seen = batch.at("first_seen");
  const auto context = static_cast<std::size_t>(prepared->config.model.context);
  int ends = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool begins_row = i % context == 0;
    const bool begins = begins_row || ids[i - 1] == kEndOfDocument;
    EXPECT_EQ(positions[i], begins ? 0 : positions[i - 1] + 1);
    EXPECT_EQ(first_seen[i], begins_row ? 0
                             : begins   ? static_cast<std::int32_t>(i % context)
                                        : first_seen[i - 1]);
    if (ids[i] == kEndOfDocument) {
      EXPECT_EQ(labels[i], kIgnoredLabel);
      ++ends;
    } else if ((i + 1) % context != 0) {
      EXPECT_EQ(labels[i], ids[i + 1]);
    }
  }
  EXPECT_GT(ends, 0);
  run(config);
}

/// A batch may run over the end of a validation.
TEST_F(TokenRun, ValidationEndsWithSamplesThatDoNotCount) {
  const RunConfig config = on_tokens("end");
  Problems problems;
  const auto prepared = prepare_run(config, problems);
  problems.raise();
  const Task task = task_of(prepared->config.model);
  const auto samples = task.valid_samples(*prepared->data, valid_choices(prepared->config));
  EXPECT_EQ(samples->size(), 2 * config.global_batch_size);
  const auto batch = batch_of(task, *samples, samples->size() - 1, 2);
  const auto& labels = batch.at("labels");
  for (std::size_t i = 0; i < labels.size(); ++i)
    EXPECT_EQ(labels[i] == kIgnoredLabel, i >= labels.size() / 2);
}

}  // namespace tessera
