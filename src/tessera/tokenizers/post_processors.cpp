#include "tessera/tokenizers/post_processors.h"

#include "tessera/base/text.h"

namespace tessera::tokenizer {

namespace {

bool adds_tokens(const Templates& templates) {
  for (const Template* const of : {&templates.single, &templates.pair}) {
    for (const TemplatePart& part : *of) {
      if (part.text < 0) return true;
    }
  }
  return false;
}

/// The id of ["[SEP]", 102].
TemplatePart token_of(const JsonPart& part, std::string_view key, std::int32_t type) {
  const JsonPart token = part.part(key);
  if (!token.json().is_array() || token.json().size() != 2)
    token.bad("it is ", JsonPart::shown(token.json()),
              " where a token and its id belong; restore the file");
  return {.id = id_of_json(token.json()[1], token, "the id"), .type = type};
}

Templates make_bert_template(const JsonPart& part) {
  const TemplatePart cls = token_of(part, "cls", 0), sep = token_of(part, "sep", 0),
                     last = token_of(part, "sep", 1);
  return {{cls, {.text = 0}, sep}, {cls, {.text = 0}, sep, {.text = 1, .type = 1}, last}};
}

Templates make_roberta_template(const JsonPart& part) {
  const TemplatePart cls = token_of(part, "cls", 0), sep = token_of(part, "sep", 0);
  return {{cls, {.text = 0}, sep}, {cls, {.text = 0}, sep, sep, {.text = 1}, sep}};
}

/// One of {"Sequence": {"id": "A", "type_id": 0}} and {"SpecialToken": {"id": "[CLS]", ...}}.
void append_part(const JsonPart& part, const JsonPart& of, Template& out) {
  if (part.has("Sequence")) {
    const JsonPart text = part.part("Sequence");
    const std::string id = text.text("id");
    if (id != "A" && id != "B") text.bad("id '", id.substr(0, 60), "' is neither A nor B");
    out.push_back({.text = id == "B" ? 1 : 0, .type = text.number("type_id", 0)});
    return;
  }
  const JsonPart token = part.part("SpecialToken");
  const std::string id = token.text("id");
  const JsonPart known = of.part("special_tokens");
  if (!known.has(id))
    token.bad("'", id.substr(0, 60), "' is not among \"special_tokens\"; restore the file");
  const JsonPart ids = known.part(id);
  for (std::size_t i = 0; i < ids.count("ids"); ++i) {
    const std::int32_t number =
        id_of_json(ids.part("ids").json()[i], ids, text("id ", i, " of the token"));
    out.push_back({.id = number, .type = token.number("type_id", 0)});
  }
}

Templates make_template(const JsonPart& part) {
  Templates out{{}, {}};
  for (std::size_t i = 0; i < part.count("single"); ++i)
    append_part(part.item("single", i), part, out.single);
  for (std::size_t i = 0; i < part.count("pair"); ++i)
    append_part(part.item("pair", i), part, out.pair);
  for (const TemplatePart& each : out.single) {
    if (each.text == 1) part.bad("\"single\" names a second text, B; restore the file");
  }
  return out;
}

/// It changes where tokens stand in the text alone.
Templates make_offsets_template(const JsonPart&) { return {}; }

Templates make_template_sequence(const JsonPart& part) {
  Templates out;
  for (std::size_t i = 0; i < part.count("processors"); ++i) {
    const JsonPart one = part.item("processors", i);
    Templates next = make_templates(one);
    if (!adds_tokens(next)) continue;
    if (adds_tokens(out))
      one.bad("a second post-processor adds tokens; this program has one at a time");
    out = std::move(next);
  }
  return out;
}

constexpr Maker<Templates> kPostProcessors[] = {
    {"BertProcessing", make_bert_template},       {"ByteLevel", make_offsets_template},
    {"RobertaProcessing", make_roberta_template}, {"Sequence", make_template_sequence},
    {"TemplateProcessing", make_template},
};

}  // namespace

Templates make_templates(const JsonPart& part) {
  return make_by_type<Templates>(kPostProcessors, part, "post-processor");
}

}  // namespace tessera::tokenizer
