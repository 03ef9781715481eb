#include "tessera/chat/chat_template.h"

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/chat/jinja/evaluate.h"
#include "tessera/chat/jinja/methods.h"
#include "tessera/chat/jinja/parser.h"

namespace tessera {

struct ChatTemplate::Parts {
  jinja::Syntax syntax;
  std::string name;
};

namespace {

[[noreturn]] void fail_at(const std::string& name, const jinja::PlacedProblem& problem) {
  const jinja::Place place = problem.place();
  std::string what = printable(problem.what());
  if (what.size() > 1000) what = replaced_utf8(what.substr(0, 1000)) + "...";
  fail(Fault::Data, name, ", line ", place.line, ", column ", place.column, ": ", what);
}

}  // namespace

ChatTemplate::ChatTemplate(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

ChatTemplate ChatTemplate::parse(std::string_view source, const std::string& name) {
  constexpr std::size_t kMostBytes = 4 << 20;
  if (source.size() > kMostBytes)
    fail(Fault::Data, name, " has ", bytes_text(std::ssize(source)), ", above ",
         bytes_text(static_cast<std::int64_t>(kMostBytes)));
  if (const std::size_t at = find_invalid_utf8(source); at != std::string::npos)
    fail(Fault::Data, name, " is not UTF-8 at byte ", at + 1, "; save it as UTF-8");
  try {
    return ChatTemplate(std::make_shared<Parts>(Parts{jinja::parse(source), name}));
  } catch (const jinja::PlacedProblem& problem) {
    fail_at(name, problem);
  }
}

RenderedChat ChatTemplate::render(const nlohmann::ordered_json& variables, const std::tm& now,
                                  const ChatLimits& limits) const {
  check(variables.is_object(), "variables of a template");
  jinja::Output out;
  try {
    out = jinja::Evaluator(parts_->syntax, variables, now,
                           {.steps = limits.steps, .bytes = limits.bytes})
              .run();
  } catch (const jinja::PlacedProblem& problem) {
    fail_at(parts_->name, problem);
  } catch (const jinja::Refusal& refusal) {
    std::string what = printable(refusal.what());
    if (what.size() > 1000) what = replaced_utf8(what.substr(0, 1000)) + "...";
    fail(Fault::Data, parts_->name, " refuses the dialogue: ", what);
  }
  if (out.generation_elsewhere)
    fail(Fault::Data, parts_->name, " has {% generation %} within a macro or a {% set %} block, ",
         "so that its place in the text is not known; move it out");
  return {std::move(out.text), std::move(out.generated)};
}

bool ChatTemplate::has_generation() const { return parts_->syntax.has_generation; }

}  // namespace tessera
