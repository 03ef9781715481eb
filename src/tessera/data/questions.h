#pragma once
/// Files of questions about texts, answered by parts of these: SQuAD's, and JSON lines.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// A part of a context.
struct Answer {
  std::string text;
  std::int64_t begin = 0;  // byte of the context at which it stands
  friend bool operator==(const Answer&, const Answer&) = default;
};

struct Question {
  std::string id, text;
  std::int64_t context = 0;     // its number in Questions::contexts
  std::vector<Answer> answers;  // the first one is trained on; none: the context has no answer
  std::string place;            // for messages: "line 3", "data[0].paragraphs[2].qas[1]"
  friend bool operator==(const Question&, const Question&) = default;
};

struct Questions {
  std::vector<std::string> contexts;
  std::vector<Question> all;
};

/// Reads a file in the form of SQuAD 1.1 or 2.0, {"data": [{"paragraphs": [{"context": ..., "qas":
/// [{"id": ..., "question": ..., "answers": [{"text": ..., "answer_start": ...}]}]}]}]}, or of JSON
/// lines as the library `datasets` has it, {"id": ..., "question": ..., "context": ..., "answers":
/// {"text": [...], "answer_start": [...]}}. It is JSON lines where the first line is an object
/// without "data". `answer_start` counts characters. A question whose "is_impossible" is true has
/// no answer. An id that is a number is taken as it is written; without one it is the place.
///
/// Errors: Fault::Data: as of read_file; with the place: what is missing or of another kind; an
/// answer that is not where it is said to be, with what stands there; no question at all.
Questions read_questions(const std::string& path);

/// The same of bytes; `path` is for messages.
Questions parse_questions(std::string_view bytes, const std::string& path);

}  // namespace tessera
