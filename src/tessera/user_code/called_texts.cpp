#include "tessera/user_code/called_texts.h"

#include <algorithm>
#include <optional>

#include "tessera/apps/sample_source.h"
#include "tessera/base/text.h"
#include "tessera/models/family.h"
#include "tessera/models/stop_texts.h"
#include "tessera/train/written_sample.h"

namespace tessera {

namespace {

/// The pieces of one text, as tokens come.
struct TextPieces {
  TextStream stream;
  StopTexts stops;
  Tokens ids;
};

std::string prompt_name(std::size_t i, std::size_t count) {
  return count == 1 ? "the prompt" : text("prompt ", i + 1, " of ", count);
}

Beginning of_words(const CalledModel& model, const TextWriting& writing, const std::string& words,
                   const std::string& name) {
  const Vocabulary* const vocabulary = model.vocabulary();
  require(vocabulary != nullptr, name, " is a text, and the model has no tokenizer; give the ids ",
          "of its tokens, or tokenizer=FOLDER when it is opened");
  const std::vector<GivenText> given = {{words, name}};
  std::vector<Beginning> out =
      beginnings_of(given, writing, *vocabulary, model.config().model.vocabulary);
  begin_as_folder(*vocabulary, writing, given, out);
  return out.front();
}

Beginning of_ids(const CalledModel& model, const TextWriting& writing, const Vocabulary& vocabulary,
                 const Tokens& ids, const std::string& name) {
  const std::int64_t known = model.config().model.vocabulary;
  require(!ids.empty(), name, " has no ids; give at least one");
  for (const std::int32_t id : ids)
    require(id >= 0 && id < known, name, " has id ", id, "; the model has ids from 0 to ",
            known - 1);
  if (writing.source == 0) return {{}, ids};
  require(std::ssize(ids) <= writing.source, name, " has ", ids.size(),
          " ids, and the model reads ", "at most ", writing.source);
  Beginning out = beginning_of(writing, vocabulary, {});
  out.source = ids;
  return out;
}

}  // namespace

std::vector<WrittenText> write_texts(CalledModel& model, const std::vector<GivenPrompt>& prompts,
                                     SampleRequest request, const TextListener& listener) {
  ModelConfig config = model.config().model;
  const Task task = task_of(config);
  require(task.text.has_value(), "a model of family ", config.family, " with task ", task.name,
          " writes no text; open one that does, as with task causal_lm");
  require(!prompts.empty(), "there are no prompts; give a text, ids, or a list of these");
  const Vocabulary ids_alone = Vocabulary::ids(config.vocabulary);
  const Vocabulary& vocabulary = model.vocabulary() ? *model.vocabulary() : ids_alone;
  TextWriting writing = writing_to_an_end(*task.text, model.config(), vocabulary);
  Problems problems;
  request.prompt_given = true;
  fit_to_task(request, writing, config, problems);
  problems.raise();

  std::vector<Beginning> beginnings;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::string name = prompt_name(i, prompts.size());
    const auto* const words = std::get_if<std::string>(&prompts[i]);
    const Beginning one =
        words != nullptr ? of_words(model, writing, *words, name)
                         : of_ids(model, writing, vocabulary, std::get<Tokens>(prompts[i]), name);
    beginnings.insert(beginnings.end(), static_cast<std::size_t>(request.samples), one);
  }
  if (model.is_of_hub()) shorten_context(config, writing, beginnings, request.options.tokens);

  std::vector<WrittenText> out;
  std::vector<TextPieces> pieces;
  for (const Beginning& beginning : beginnings)
    pieces.push_back({TextStream(vocabulary, beginning.prompt), StopTexts(request.stops), {}});
  const auto tell = [&](std::size_t i, std::string_view piece) {
    if (listener.on_piece && model.vocabulary() != nullptr && !piece.empty())
      listener.on_piece(i, piece);
  };
  GenerateOptions options = request.options;
  options.on_token = [&](std::size_t of_some, std::int32_t id) {
    TextPieces& to = pieces[out.size() + of_some];
    to.ids.push_back(id);
    tell(out.size() + of_some, to.stops.add(to.stream.add(id)));
  };
  options.ends = [&](std::size_t, std::int32_t) { return listener.ends && listener.ends(); };
  const std::int64_t rows = std::min(request.rows, most_alike(beginnings)) * options.beams;
  model.write(config, rows, [&](RankGroup& group) {
    TextModel writer(group, writing);
    write_texts(writer, vocabulary, beginnings, options, request.stops,
                [&](const std::string& written) {
                  TextPieces& of = pieces[out.size()];
                  const std::string last = of.stops.add(of.stream.rest());
                  tell(out.size(), last + of.stops.rest());
                  out.push_back({model.vocabulary() ? written : "", std::move(of.ids)});
                });
  });
  return out;
}

}  // namespace tessera
