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
    std::vector<std::string> tasks, classes;
    for (const FamilyTask& task : family->tasks) tasks.push_back(text("`", task.name, "`"));
    const HubFamily* const hub = hub_family_of(FamilyRef(*family));
    if (hub != nullptr) {
      for (const HubClass& each : hub->classes) classes.push_back(text("`", each.name, "`"));
    }
    out += text("| `", family->name, "` | ", family->doc, " | ",
                hub == nullptr ? "" : text("`", hub->model_type, "`: ", join(classes)), " | ",
                join(tasks), " |\n");
  }
  return out;
}

}  // namespace tessera
