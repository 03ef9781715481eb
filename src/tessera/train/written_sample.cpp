#include "tessera/train/written_sample.h"

#include <algorithm>

#include "tessera/base/counted.h"
#include "tessera/files/text.h"
#include "tessera/models/stop_texts.h"
#include "tessera/sources/token_data.h"
#include "tessera/token_files/token_stream.h"

namespace tessera {

namespace {

/// The tokens of a text, which a task has put its special ones around.
Tokens text_in(const HostTensor& row, const TextWriting& writing) {
  const std::int32_t* const begin = row.data<std::int32_t>() + (writing.first ? 1 : 0);
  return {begin, std::find(begin, row.data<std::int32_t>() + row.numel(), *writing.end)};
}

std::int64_t alike_from(const std::vector<Beginning>& beginnings, std::size_t first) {
  const auto begin = beginnings.begin() + static_cast<std::ptrdiff_t>(first);
  return std::find_if(
             begin, beginnings.end(),
             [&](const Beginning& other) { return other.prompt.size() != begin->prompt.size(); }) -
         begin;
}

}  // namespace

SampleTexts texts_of_sample(const Task& task, const Samples& samples, std::int64_t number) {
  std::vector<HostTensor> values;
  for (const TaskInput& input : task.inputs) {
    Shape shape{1};
    for (const std::int64_t size : input.sample) shape.push_back(size);
    values.emplace_back(input.dtype, shape);
  }
  BatchInputs batch("sample");
  const HostTensor *source = nullptr, *labels = nullptr;
  for (std::size_t i = 0; i < values.size(); ++i) {
    batch.add(task.inputs[i].name, values[i].type(), values[i].bytes().data());
    if (task.inputs[i].name == "source") source = &values[i];
    if (task.inputs[i].name == "labels") labels = &values[i];
  }
  check(source != nullptr && labels != nullptr && task.text->end, "task ", task.name,
        " writes from a source, and has no input source, no labels or no end token");
  samples.fill(number, 1, batch);
  return {text_in(*source, *task.text), text_in(*labels, *task.text)};
}

std::vector<GivenText> given_lines(const std::string& path) {
  std::vector<GivenText> out;
  for (std::string& line : read_lines(path)) {
    const std::int64_t number = std::ssize(out) + 1;
    out.push_back({std::move(line), text("line ", number, " of '", path, "'"), Fault::Data});
  }
  return out;
}

std::vector<Beginning> beginnings_of(const std::vector<GivenText>& texts,
                                     const TextWriting& writing, const Vocabulary& vocabulary,
                                     std::int64_t model_vocabulary) {
  std::vector<Beginning> out;
  for (const GivenText& given : texts) {
    Tokens tokens;
    try {
      tokens = vocabulary.encode(given.text);
      require_ids(tokens, model_vocabulary, given.where);
    } catch (const Error& error) {
      fail(given.fault, given.where, ": ", error.what());
    }
    if (writing.source > 0 && tokens.empty())
      fail(given.fault, given.where, " is empty; the model writes a text from a source: give one");
    if (given.text.find_first_of(writing.never) != std::string::npos)
      fail(given.fault, given.where,
           " has a tab or a new line, which separate texts; give only the source");
    const std::int64_t length =
        std::ssize(tokens) + (writing.end ? 1 : 0) + (writing.first ? 1 : 0);
    if (writing.source > 0 && length > writing.source)
      fail(given.fault, given.where, " has ", counted(length, "token"),
           writing.end ? " with the end token" : "", ", the model's source-context is ",
           writing.source, "; shorten the text, or train with a larger source-context");
    out.push_back(beginning_of(writing, vocabulary, std::move(tokens)));
  }
  return out;
}

TextWriting writing_to_an_end(const TextWriting& writing, const RunConfig& config,
                              const Vocabulary& vocabulary) {
  TextWriting out = writing;
  const std::int64_t end = eod_token_of(config, vocabulary);
  if (writing.source == 0 && !out.end && end >= 0 && end < config.model.vocabulary)
    out.end = static_cast<std::int32_t>(end);
  return out;
}

std::int64_t most_alike(const std::vector<Beginning>& beginnings) {
  std::int64_t out = 0;
  for (std::size_t first = 0; first < beginnings.size(); ++first)
    out = std::max(out, alike_from(beginnings, first));
  return out;
}

void write_texts(TextModel& model, const Vocabulary& vocabulary,
                 const std::vector<Beginning>& beginnings, const GenerateOptions& options,
                 const std::vector<std::string>& stops,
                 const std::function<void(const std::string& written)>& each) {
  const std::int64_t at_a_time = model.rows() / options.beams;
  for (std::size_t first = 0; first < beginnings.size();) {
    const auto count = static_cast<std::size_t>(std::min(at_a_time, alike_from(beginnings, first)));
    const std::span<const Beginning> texts = std::span(beginnings).subspan(first, count);
    GenerateOptions how = options;
    how.first = static_cast<std::int64_t>(first);
    std::vector<TextStream> streams;
    for (const Beginning& text : texts) streams.emplace_back(vocabulary, text.prompt);
    std::vector<StopTexts> stopped(count, StopTexts(stops));
    how.ends = [&](std::size_t text, std::int32_t token) {
      stopped[text].add(streams[text].add(token));
      return stopped[text].stopped() || (options.ends && options.ends(text, token));
    };
    for (const Tokens& written : generate(model, vocabulary, texts, how)) {
      StopTexts cut(stops);
      std::string before = cut.add(vocabulary.decode_text(written));
      each(before + cut.rest());
    }
    first += count;
  }
}

std::string sample_to_show(TextModel& model, const Task& task, const Samples& samples,
                           const Vocabulary& vocabulary, const GenerateOptions& options) {
  const TextWriting& writing = model.writing();
  Beginning beginning = beginning_of(writing, vocabulary, {});
  std::string out;
  if (writing.source > 0) {
    Tokens words = texts_of_sample(task, samples, 0).source;
    out = text(vocabulary.decode_text(words), " -> ");
    beginning = beginning_of(writing, vocabulary, std::move(words));
  }
  const std::vector<Tokens> written =
      generate(model, vocabulary, std::span(&beginning, 1), options);
  return out + vocabulary.decode_text(written[0]);
}

}  // namespace tessera
