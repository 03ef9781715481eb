/// docs/reference/families.md.

#include <algorithm>

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

| family | kind | it is | `model_type` | learns | without a preset |
|---|---|---|---|---|---|
)";

}  // namespace

std::string families_page() {
  std::string out(kBegin);
  for (const ModelFamily* family : model_families()) {
    std::vector<std::string> tasks;
    for (const FamilyTask& task : family->tasks) tasks.push_back(text("`", task.name, "`"));
    std::vector<std::string> folders;
    for (const HubFamily* const hub : hub_families()) {
      if (hub->family->name != family->name) continue;
      folders.push_back(text("`", hub->model_type, "`", hub->only_read ? " (only read)" : ""));
    }
    out += text("| `", family->name, "` | ", to_text(kind_of(*family)), " | ", family->doc, " | ",
                join(folders), " | ", join(tasks), " | ", published_text(*family), " |\n");
  }
  return out;
}

}  // namespace tessera
