/// Questions about texts, whose answers stand where they are said to.

#include "tessera/data/questions.h"
#include "fuzz/target.h"
#include "tessera/data/answer_scores.h"

namespace tessera::fuzz {

namespace {

void run(std::string_view input) {
  const Questions questions = parse_questions(input, "input");
  then([&] {
    check(!questions.all.empty(), "a file without a question");
    for (const Question& question : questions.all) {
      const std::string& context =
          questions.contexts.at(static_cast<std::size_t>(question.context));
      for (const Answer& answer : question.answers) {
        check(!answer.text.empty(), "an answer of nothing");
        check(context.compare(static_cast<std::size_t>(answer.begin), answer.text.size(),
                              answer.text) == 0,
              "an answer that is not in its text");
        const std::string normal = normalized_answer(answer.text);
        check(normalized_answer(normal) == normal, "'", normal, "' is normal");
      }
    }
  });
}

}  // namespace

const Target kTarget = {1 << 20, 512, run};

}  // namespace tessera::fuzz
