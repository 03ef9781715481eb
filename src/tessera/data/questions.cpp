#include "tessera/data/questions.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/files/json_fault.h"
#include "tessera/files/json_lines.h"
#include "tessera/files/other_kinds.h"
#include "tessera/files/unpack.h"
#include "tessera/tokenizers/json_part.h"

namespace tessera {

namespace {

using nlohmann::json;
using tokenizer::JsonPart;

constexpr std::size_t kMostShown = 60;  // bytes of a value in a message

std::string shown_value(std::string_view value) {
  std::size_t size = std::min(value.size(), kMostShown);
  while (size > 0 && size < value.size() &&
         (static_cast<unsigned char>(value[size]) & 0xC0) == 0x80)
    --size;
  return text("'", printable(value.substr(0, size)), size < value.size() ? "...'" : "'");
}

/// The byte at which character `number` begins; npos: there are fewer.
std::size_t byte_of_character(std::string_view utf8, std::int64_t number) {
  std::size_t at = 0;
  for (; number > 0 && at < utf8.size(); --number)
    at += static_cast<std::size_t>(code_point_at(utf8, at).size);
  return number == 0 ? at : std::string_view::npos;
}

/// Takes questions from JSON; every message begins with the file and the place in it.
class QuestionReader {
 public:
  explicit QuestionReader(const std::string& path) : path_(path) {}

  void read_squad(const json& document) {
    const json& data = member(document, "data", json::value_t::array, "the file");
    for (std::size_t i = 0; i < data.size(); ++i) {
      const std::string article = text("data[", i, "]");
      const json& paragraphs = member(data[i], "paragraphs", json::value_t::array, article);
      for (std::size_t k = 0; k < paragraphs.size(); ++k)
        read_paragraph(paragraphs[k], text(article, ".paragraphs[", k, "]"));
    }
  }

  void read_line(const json& object, const std::string& place) {
    const std::string& context = text_of_key(object, "context", place);
    if (out_.contexts.empty() || out_.contexts.back() != context) out_.contexts.push_back(context);
    Question question = begin(object, place);
    if (object.contains("answers")) {
      const json& answers = member(object, "answers", json::value_t::object, place);
      const json& texts = member(answers, "text", json::value_t::array, place + ".answers");
      const json& starts =
          member(answers, "answer_start", json::value_t::array, place + ".answers");
      if (texts.size() != starts.size())
        bad(place, "has ", counted(std::ssize(texts), "text"), " of answers and ",
            counted(std::ssize(starts), "answer_start"), "; give as many of both");
      for (std::size_t i = 0; i < texts.size(); ++i) add_answer(texts[i], starts[i], question);
    }
    finish(object, std::move(question));
  }

  Questions take() {
    if (out_.all.empty())
      fail(Fault::Data, "'", path_, "' has no question; give a SQuAD file, or JSON lines with ",
           "id, question, context and answers");
    return std::move(out_);
  }

 private:
  template <typename... Parts>
  [[noreturn]] void bad(const std::string& place, const Parts&... parts) const {
    fail(Fault::Data, "'", path_, "' ", place, " ", parts...);
  }

  const json& member(const json& object, const char* key, json::value_t kind,
                     const std::string& place) const {
    const auto found = object.is_object() ? object.find(key) : object.end();
    if (!object.is_object() || found == object.end())
      bad(place, "has no \"", key, "\"; give a SQuAD file, or JSON lines with id, ",
          "question, context and answers");
    if (found->type() != kind)
      bad(place, "has ", JsonPart::shown(*found), " as \"", key, "\" where ",
          kind == json::value_t::array    ? "a list"
          : kind == json::value_t::object ? "an object"
                                          : "a text",
          " belongs");
    return *found;
  }
  const std::string& text_of_key(const json& object, const char* key,
                                 const std::string& place) const {
    return member(object, key, json::value_t::string, place).get_ref<const std::string&>();
  }

  void read_paragraph(const json& paragraph, const std::string& place) {
    out_.contexts.push_back(text_of_key(paragraph, "context", place));
    const json& all = member(paragraph, "qas", json::value_t::array, place);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string at = text(place, ".qas[", i, "]");
      Question question = begin(all[i], at);
      if (all[i].contains("answers")) {
        for (const json& answer : member(all[i], "answers", json::value_t::array, at)) {
          const std::string& given = text_of_key(answer, "text", at + ".answers");
          if (!answer.contains("answer_start")) bad(at + ".answers", "has no \"answer_start\"");
          add_answer(given, answer["answer_start"], question);
        }
      }
      finish(all[i], std::move(question));
    }
  }

  Question begin(const json& object, const std::string& place) const {
    Question out;
    out.text = text_of_key(object, "question", place);
    out.context = std::ssize(out_.contexts) - 1;
    out.place = place;
    const auto id = object.find("id");
    out.id = id == object.end() ? place
             : id->is_string()  ? id->get<std::string>()
                                : JsonPart::shown(*id);
    return out;
  }

  void add_answer(const json& given, const json& start, Question& question) const {
    if (!given.is_string() || !start.is_number_integer())
      bad(question.place, "has an answer ", JsonPart::shown(given), " at ", JsonPart::shown(start),
          " where a text and a whole number are expected");
    const std::string& context = out_.contexts.back();
    Answer answer{given.get<std::string>(), 0};
    const auto character = start.get<std::int64_t>();
    const std::size_t at =
        character < 0 ? std::string::npos : byte_of_character(context, character);
    if (at == std::string::npos || context.compare(at, answer.text.size(), answer.text) != 0)
      bad(question.place, "has the answer ", shown_value(answer.text), " at character ", character,
          ", where the context has ",
          at == std::string::npos
              ? std::string("nothing")
              : shown_value(std::string_view(context).substr(at, answer.text.size())),
          "; answer_start counts characters from 0");
    answer.begin = static_cast<std::int64_t>(at);
    question.answers.push_back(std::move(answer));
  }

  void finish(const json& object, Question question) {
    const auto impossible = object.find("is_impossible");
    if (impossible != object.end() && *impossible == json(true)) question.answers.clear();
    std::erase_if(question.answers, [](const Answer& answer) { return answer.text.empty(); });
    out_.all.push_back(std::move(question));
  }

  const std::string& path_;
  Questions out_;
};

bool is_json_lines(std::string_view bytes) {
  const json first = json::parse(bytes.substr(0, bytes.find('\n')), nullptr, false);
  return first.is_object() && !first.contains("data");
}

}  // namespace

Questions parse_questions(std::string_view bytes, const std::string& path) {
  refuse_other_kind(bytes, path);
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  if (const std::size_t wrong = find_invalid_utf8(bytes); wrong != std::string_view::npos)
    fail(Fault::Data, "'", path, "' byte ", wrong + 1, " is not UTF-8; convert the file to UTF-8");
  QuestionReader reader(path);
  if (is_json_lines(bytes)) {
    const LineBlock block{std::string(bytes), &path, 1};
    for_each_line(block, [&](std::string_view line, const LinePlace& place) {
      const json object = json::parse(line, nullptr, false);
      if (object.is_discarded())
        fail(Fault::Data, "'", path, "' line ", place.line, ": ",
             json_fault(line, "an object with id, question, context and answers in each line"));
      if (!object.is_object())
        fail(Fault::Data, "'", path, "' line ", place.line,
             " is not a JSON object; give an object ",
             "with id, question, context and answers in each line");
      reader.read_line(object, text("line ", place.line));
    });
    return reader.take();
  }
  json document;
  try {
    document = json::parse(bytes);
  } catch (const json::parse_error& error) {
    fail(Fault::Data, "'", path, "' byte ", error.byte, ": ",
         json_fault(bytes, "a SQuAD file, or JSON lines with id, question, context and answers"));
  } catch (const json::exception&) {
    fail(Fault::Data, "'", path, "' has a number that is too large; make it smaller");
  }
  reader.read_squad(document);
  return reader.take();
}

Questions read_questions(const std::string& path) {
  return parse_questions(read_contents(path), path);
}

}  // namespace tessera
