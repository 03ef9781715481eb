/// docs/reference/families.md.

#include <algorithm>
#include <map>

#include "forms.h"
#include "tessera/base/text.h"
#include "tessera/config/family_fields.h"
#include "tessera/pretrained/hub/hub_family.h"

namespace tessera {

namespace {

constexpr std::string_view kBegin = R"(# Model families

`--family NAME` trains one of them from the beginning; `--init-from FOLDER` takes the family from `model_type` in the
folder's `config.json`. [Models](models.md) has what is special to some.

LLaMA 3, TinyLlama and SmolLM 2 are `llama`, Qwen 2.5 is `qwen2`, Mistral 7B `mistral`, Gemma 3 1B `gemma3_text`, Phi-2
`phi`, Pythia `gpt_neox`, XLM-R `xlm-roberta`, DeBERTa v3 `deberta-v2`, all-mpnet-base `mpnet`, Flan-T5 `t5`, OPUS-MT
`marian`.

Where the table names no tasks, a family learns those of its kind, and the first of them without `--task`:

)";

constexpr std::string_view kHead = R"(
| family | kind | it is | learns | without a preset |
|---|---|---|---|---|
)";

std::string tasks_of(const ModelFamily& family) {
  std::vector<std::string> out;
  for (const FamilyTask& task : family.tasks) out.push_back(text("`", task.name, "`"));
  return join(out);
}

/// What most families of a kind learn, by the kind's name.
std::map<std::string, std::string> usual_tasks() {
  std::map<std::string, std::map<std::string, int>> counts;
  for (const ModelFamily* family : model_families())
    ++counts[std::string(to_text(kind_of(*family)))][tasks_of(*family)];
  std::map<std::string, std::string> out;
  for (const auto& [kind, lists] : counts)
    out[kind] = std::ranges::max_element(lists, {}, [](auto& list) { return list.second; })->first;
  return out;
}

/// An item of a list, in lines of documents.
std::string item(std::string line) {
  constexpr std::size_t kMost = 120;
  for (std::size_t begin = 0; line.size() - begin > kMost;) {
    const std::size_t space = line.rfind(' ', begin + kMost);
    line.replace(space, 1, "\n  ");
    begin = space + 1;
  }
  return "- " + line + "\n";
}

/// The folders' `model_type`, where that is another word than the family's name.
std::string model_types() {
  std::vector<std::string> others, without;
  for (const HubFamily* const hub : hub_families()) {
    if (hub->model_type != hub->family->name)
      others.push_back(text("`", hub->model_type, "` of `", hub->family->name, "`",
                            hub->only_read ? " (only read)" : ""));
  }
  for (const ModelFamily* family : model_families()) {
    const auto is_its = [&](const HubFamily* hub) { return hub->family->name == family->name; };
    if (std::ranges::none_of(hub_families(), is_its))
      without.push_back(text("`", family->name, "`"));
  }
  return text("`model_type` is the family's name, or ", join(others, ",\n"),
              ".\nThere are no folders of ", join(without), ".\n");
}

}  // namespace

std::string families_page() {
  std::string out(kBegin);
  const std::map<std::string, std::string> usual = usual_tasks();
  for (const auto& [kind, tasks] : usual) out += item(text(kind, ": ", tasks));
  out += "\n" + model_types();
  out += kHead;
  for (const ModelFamily* family : model_families()) {
    const std::string kind(to_text(kind_of(*family))), tasks = tasks_of(*family);
    out += text("| `", family->name, "` | ", kind, " | ", family->doc, " | ",
                tasks == usual.at(kind) ? "" : tasks, " | ", published_text(*family), " |\n");
  }
  return out;
}

}  // namespace tessera
