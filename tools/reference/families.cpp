/// docs/reference/families.md.

#include <algorithm>

#include "forms.h"
#include "tessera/base/text.h"
#include "tessera/pretrained/hub/hub_family.h"

namespace tessera {

namespace {

constexpr std::string_view kBegin = R"(# Model families

`--family NAME` trains one of them from the beginning; `--init-from FOLDER` takes the family from the folder's
`config.json`. [Models](models.md) has what is special to some.

| family | it is | folders of `model_type`, with | learns |
|---|---|---|---|
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
      std::vector<std::string> classes;
      for (const HubClass& each : hub->classes) classes.push_back(text("`", each.name, "`"));
      folders.push_back(text("`", hub->model_type, "`: ", join(classes),
                             hub->only_read ? " of Megatron-LM, only read" : ""));
    }
    out += text("| `", family->name, "` | ", family->doc, " | ", join(folders, "; "), " | ",
                join(tasks), " |\n");
  }
  return out;
}

}  // namespace tessera
