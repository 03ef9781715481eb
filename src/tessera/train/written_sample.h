#pragma once
/// Texts that a user asks for, and those that a training run shows: what they are written from, and
/// writing them, several at a time.

#include <functional>
#include <string>
#include <vector>

#include "tessera/config/config.h"
#include "tessera/token_files/samples.h"
#include "tessera/train/generate.h"

namespace tessera {

/// A text that a user gives to a model.
struct GivenText {
  std::string text;
  std::string where;           // for messages: "--prompt", "line 3 of 'x.txt'"
  Fault fault = Fault::Usage;  // of an error in it
};

/// The lines of a file (read_lines).
std::vector<GivenText> given_lines(const std::string& path);

/// What each text begins. Errors, with the text's fault and where it is: a character that the
/// vocabulary lacks; an id that the model lacks; no text where one is written from a source; a
/// source that is longer than the model's.
std::vector<Beginning> beginnings_of(const std::vector<GivenText>& texts,
                                     const TextWriting& writing, const Vocabulary& vocabulary,
                                     std::int64_t model_vocabulary);

/// The task's way of writing, where a text also ends at the token that ends documents, as a
/// tokenizer's </s>: config.eod_token, or that of the vocabulary.
TextWriting writing_to_an_end(const TextWriting& writing, const RunConfig& config,
                              const Vocabulary& vocabulary);

/// The most beginnings in a row whose prompts are of one length: so many can be written at a time.
std::int64_t most_alike(const std::vector<Beginning>& beginnings);

/// Calls `each` with what is written behind each beginning, in order, without the first of `stops`
/// and what follows it. As many are written at a time as the model has rows for and begin with
/// prompts of one length.
void write_texts(TextModel& model, const Vocabulary& vocabulary,
                 const std::vector<Beginning>& beginnings, const GenerateOptions& options,
                 const std::vector<std::string>& stops,
                 const std::function<void(const std::string& written)>& each);

/// The tokens of one sample of a task that writes from a source, without end tokens.
struct SampleTexts {
  Tokens source, target;
};
SampleTexts texts_of_sample(const Task& task, const Samples& samples, std::int64_t number);

/// A text to show while a model trains: continued from nothing, or, where there are sources,
/// "SOURCE -> TEXT" of the first of `samples`.
std::string sample_to_show(TextModel& model, const Task& task, const Samples& samples,
                           const Vocabulary& vocabulary, const GenerateOptions& options);

}  // namespace tessera
