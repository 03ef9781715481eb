#include "tessera/pretrained/hub/hub_labels.h"

#include <set>
#include <utility>

#include "tessera/base/text.h"
#include "tessera/data/row_labels.h"

namespace tessera {

namespace {

constexpr std::int64_t kUsualLabels = 2;  // where a folder names none
constexpr std::int64_t kMostLabels = 1'000'000'000;

}  // namespace

HubLabels read_labels(const HubConfig& from) {
  if (!from.has("id2label"))
    return {from.has("num_labels") ? from.whole("num_labels", 1, kMostLabels) : kUsualLabels};
  std::vector<std::string> out;
  const HubJson& names = from.json()["id2label"];
  const auto refuse = [&](std::string_view what) {
    fail(Fault::Data, from.path(), ": id2label is ", shown(names), what,
         "; it must give the name of each label by its number, as {\"0\": \"cat\"}");
  };
  if (!names.is_object() || names.empty()) refuse("");
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto found = names.find(text(i));
    if (found == names.end() || !found->is_string()) refuse(text(", without a name for ", i));
    out.push_back(found->get<std::string>());
  }
  if (std::set(out.begin(), out.end()).size() != out.size()) refuse(", with a name twice");
  const std::int64_t count = std::ssize(out);
  return {count, are_unnamed_labels(out) ? std::vector<std::string>() : std::move(out)};
}

void write_labels(std::int64_t classes, std::span<const std::string> labels, HubJson& to) {
  const bool known = std::ssize(labels) == classes;
  if (!known && to.contains("id2label") && std::ssize(to["id2label"]) == classes) return;
  HubJson names = HubJson::object(), numbers = HubJson::object();
  for (std::int64_t i = 0; i < classes; ++i) {
    const std::string name = known ? labels[static_cast<std::size_t>(i)] : text("LABEL_", i);
    names[text(i)] = name;
    numbers[name] = i;
  }
  to["id2label"] = names;
  to["label2id"] = numbers;
  to.erase("num_labels");
}

}  // namespace tessera
