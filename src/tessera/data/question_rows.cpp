#include "tessera/data/question_rows.h"

#include <algorithm>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/files/unpack.h"

namespace tessera {

namespace {

/// The questions of several files.
struct LoadedQuestions {
  Questions all;
  std::vector<TextFile> files;
};

LoadedQuestions load_question_files(const std::vector<std::string>& paths) {
  LoadedQuestions out;
  if (paths.empty()) return out;
  for (const std::string& path : text_files(paths)) {
    const std::string bytes = read_contents(path);
    Questions read = parse_questions(bytes, path);
    const std::int64_t contexts = std::ssize(out.all.contexts);
    for (Question& question : read.all) {
      question.context += contexts;
      question.place = text(question.place, " of '", path, "'");
      out.all.all.push_back(std::move(question));
    }
    for (std::string& context : read.contexts) out.all.contexts.push_back(std::move(context));
    out.files.push_back({path, std::ssize(bytes), 0, 0});
  }
  return out;
}

std::string digest_of_questions(const Questions& questions) {
  StreamHash hash;
  const auto add = [&](const std::string& part) {
    hash.update(text(part.size(), ":"));
    hash.update(part);
  };
  for (const Question& question : questions.all) {
    add(question.text);
    add(questions.contexts[static_cast<std::size_t>(question.context)]);
    for (const Answer& answer : question.answers) add(text(answer.begin, " ", answer.text));
  }
  return hash.text();
}

/// What a vocabulary is made of: every context and question, a new line behind each.
std::string joined_questions(const Questions& questions) {
  std::string out;
  for (const std::string& context : questions.contexts) out += text(context, "\n");
  for (const Question& question : questions.all) out += text(question.text, "\n");
  return out;
}

/// The tokens that have a part of an answer.
TokenRange range_of(const Answer& answer, const SpannedIds& tokens) {
  TokenRange out;
  const std::int64_t end = answer.begin + std::ssize(answer.text);
  for (std::size_t i = 0; i < tokens.spans.size(); ++i) {
    const ByteSpan& span = tokens.spans[i];
    if (span.begin == span.end || span.end <= answer.begin || span.begin >= end) continue;
    if (out.none()) out.first = static_cast<std::int64_t>(i);
    out.last = static_cast<std::int64_t>(i);
  }
  return out;
}

void encode_questions(const Questions& from, const Vocabulary& vocabulary, EncodedQuestions& out) {
  const std::int64_t contexts = std::ssize(out.contexts);
  for (const std::string& context : from.contexts)
    out.contexts.push_back({context, vocabulary.encode_spans(context)});
  for (const Question& question : from.all) {
    try {
      EncodedQuestions::Entry entry{question, {}, {}};
      entry.question.context += contexts;
      entry.ids = vocabulary.encode(
          std::string_view(question.text)
              .substr(std::min(question.text.find_first_not_of(" \t\n\r"), question.text.size())));
      if (question.answers.empty()) {
        out.some_without = true;
      } else {
        const auto context = static_cast<std::size_t>(entry.question.context);
        entry.answer = range_of(question.answers.front(), out.contexts[context].tokens);
      }
      out.all.push_back(std::move(entry));
    } catch (const Error& error) {
      throw error.with(text("in the question at ", question.place));
    }
  }
}

Dataset encoded_questions(const RowsChoice& choice, Vocabulary vocabulary,
                          const LoadedQuestions& train, const LoadedQuestions& apart) {
  auto questions = std::make_shared<EncodedQuestions>();
  encode_questions(train.all, vocabulary, *questions);
  questions->train = choice.trains(std::ssize(questions->all));
  encode_questions(apart.all, vocabulary, *questions);
  questions->files = train.files;
  const bool unlabelled =
      choice.tests && std::ranges::all_of(train.all.all, [](const Question& question) {
        return question.answers.empty();
      });
  if (choice.tests)
    questions->some_without =
        choice.some_without_answer || (questions->some_without && !unlabelled);
  return {.vocabulary = std::move(vocabulary),
          .content = std::shared_ptr<const EncodedQuestions>(std::move(questions)),
          .digest = digest_of_questions(train.all),
          .held_out_digest = choice.valid_paths.empty() ? "" : digest_of_questions(apart.all),
          .label_names = {},
          .unlabelled = unlabelled};
}

}  // namespace

Dataset load_questions(const RowsChoice& choice, const VocabularyChoice& vocabulary) {
  const LoadedQuestions train = load_question_files(choice.paths);
  return encoded_questions(choice, Vocabulary::of(vocabulary, joined_questions(train.all)), train,
                           load_question_files(choice.valid_paths));
}

Dataset load_questions(const RowsChoice& choice, const Vocabulary& vocabulary) {
  return encoded_questions(choice, vocabulary, load_question_files(choice.paths),
                           load_question_files(choice.valid_paths));
}

void require_question_ids(const EncodedQuestions& questions, std::int64_t vocabulary,
                          std::string_view where) {
  for (const EncodedQuestions::Context& context : questions.contexts)
    require_ids(context.tokens.ids, vocabulary, where);
  for (const EncodedQuestions::Entry& entry : questions.all)
    require_ids(entry.ids, vocabulary, where);
}

std::string questions_digest(const RowsChoice& choice) {
  return digest_of_questions(load_question_files(choice.paths).all);
}

}  // namespace tessera
