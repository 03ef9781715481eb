#pragma once
/// The tasks that there are, a row each: what is the same for every family that a model is trained
/// in. A family adds how its model is made for the task (models/family.h).

#include <string_view>

#include "tessera/data/row_labels.h"

namespace tessera {

/// Which rows the data of a task is. Their columns are found by usual names, and a context of 0 is
/// that of the longest sample.
enum class RowsKind {
  None,  // it may be texts, columns of tables, token files or pictures
  Tables,
  TaggedWords,
  Questions,
  TextGroups,  // texts that belong together: an anchor, a positive, a negative
  Choices,     // a text and some that may follow it
  Preferences,
};

/// What a model of the task can write.
enum class Writes { Nothing, Texts, TextsFromSources };

/// The part of a model that is a task's own. Transformers names a class for each; tasks whose
/// models have the same parameters share one. Sets of them are joined by |.
enum class TaskHead : unsigned {
  None = 0,
  PreTraining = 1 << 0,
  MaskedLm = 1 << 1,
  CausalLm = 1 << 2,
  Seq2SeqLm = 1 << 3,
  SequenceClassification = 1 << 4,
  TokenClassification = 1 << 5,
  QuestionAnswering = 1 << 6,
  ImageClassification = 1 << 7,
  Body = 1 << 8,  // the model without a head
  MultipleChoice = 1 << 9,
};
constexpr TaskHead operator|(TaskHead a, TaskHead b) {
  return static_cast<TaskHead>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
/// `head` is in a set, or the set is empty.
constexpr bool is_of(TaskHead set, TaskHead head) {
  return set == TaskHead::None || (static_cast<unsigned>(set) & static_cast<unsigned>(head)) != 0;
}

struct TaskKind {
  std::string_view name;  // "masked_lm"
  std::string_view doc;
  TaskHead hub_head = TaskHead::None;  // None: transformers has no such model
  RowsKind rows = RowsKind::None;
  /// In config.json of transformers: what is learned of labels; empty: it says nothing of it.
  std::string_view problem_type = {};
  Writes writes = Writes::Nothing;
  std::string_view misspelt = {};           // in scripts that many have; empty: nothing
  const LabelKind* labels = &kClassLabels;  // of RowsKind::Tables

  /// A task is called by its name.
  constexpr operator std::string_view() const { return name; }
  friend constexpr bool operator==(std::string_view a, const TaskKind& b) { return a == b.name; }
};

inline constexpr TaskKind kPretraining{
    "pretraining",
    "masked tokens, and how two parts of a text belong together; "
    "of electra, which tokens are replaced",
    TaskHead::PreTraining},
    kMaskedLm{"masked_lm", "tokens that are masked", TaskHead::MaskedLm},
    kCausalLm{.name = "causal_lm",
              .doc = "the next token from those before it",
              .hub_head = TaskHead::CausalLm,
              .writes = Writes::Texts,
              .misspelt = "casual_lm"},
    kPreference{.name = "preference",
                .doc = "of two answers to a prompt, the one that was chosen (DPO)",
                .hub_head = TaskHead::CausalLm,
                .rows = RowsKind::Preferences,
                .writes = Writes::Texts},
    kSeq2SeqLm{.name = "seq2seq_lm",
               .doc = "a text from another one",
               .hub_head = TaskHead::Seq2SeqLm,
               .writes = Writes::TextsFromSources},
    kDenoising{.name = "denoising",
               .doc = "a text from what is left of it when spans are taken out",
               .hub_head = TaskHead::Seq2SeqLm,
               .writes = Writes::TextsFromSources},
    kSequenceClassification{"sequence_classification", "a label for a text or a pair of texts",
                            TaskHead::SequenceClassification, RowsKind::Tables,
                            "single_label_classification"},
    kRegression{.name = "regression",
                .doc = "a number, or several, for a text or a pair of texts",
                .hub_head = TaskHead::SequenceClassification,
                .rows = RowsKind::Tables,
                .problem_type = "regression",
                .labels = &kNumberLabels},
    kMultiLabelClassification{.name = "multi_label_classification",
                              .doc = "any number of labels for a text or a pair of texts",
                              .hub_head = TaskHead::SequenceClassification,
                              .rows = RowsKind::Tables,
                              .problem_type = "multi_label_classification",
                              .labels = &kLabelSets},
    kTokenClassification{"token_classification", "a label for each word of a sentence",
                         TaskHead::TokenClassification, RowsKind::TaggedWords},
    kQuestionAnswering{"question_answering", "the part of a text that answers a question",
                       TaskHead::QuestionAnswering, RowsKind::Questions},
    kMultipleChoice{.name = "multiple_choice",
                    .doc = "the right one of several answers to a text",
                    .hub_head = TaskHead::MultipleChoice,
                    .rows = RowsKind::Choices},
    kSentenceEmbedding{.name = "sentence_embedding",
                       .doc = "vectors of texts, close where texts belong together",
                       .hub_head = TaskHead::Body,
                       .rows = RowsKind::TextGroups},
    kImageClassification{"image_classification", "the class of a picture",
                         TaskHead::ImageClassification};

}  // namespace tessera
