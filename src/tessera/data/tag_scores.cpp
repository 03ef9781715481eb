#include "tessera/data/tag_scores.h"

#include <algorithm>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

struct TagParts {
  char place = 'O';             // B, I, E, S or O
  std::string_view type = "_";  // as "PER"
};

TagParts parts_of(std::string_view tag) {
  if (tag.empty()) return {};
  const std::size_t line = tag.find('-', 1);
  const std::string_view type = tag.substr(line == tag.npos ? 1 : line + 1);
  return {tag[0], type.empty() ? "_" : type};
}

/// Whether an entity begins here; without, one that `before` is in goes on, or there is none.
bool begins_entity(const TagParts& before, const TagParts& here) {
  if (here.place == 'O') return false;
  return here.place == 'B' || here.place == 'S' || before.place == 'E' || before.place == 'S' ||
         before.place == 'O' || before.type != here.type;
}

double share(std::int64_t part, std::int64_t of) {
  return of == 0 ? 0 : static_cast<double>(part) / static_cast<double>(of);
}

void count_entities(const Tags& labels, const Tags& predictions, TagScores& out) {
  const std::vector<Entity> labelled = entities_of(labels), found = entities_of(predictions);
  const auto count = [&](const Entity& entity, std::int64_t EntityCounts::*as) {
    ++(out.all.*as);
    ++(out.types[entity.type].*as);
  };
  for (const Entity& entity : labelled) count(entity, &EntityCounts::labelled);
  for (const Entity& entity : found) {
    count(entity, &EntityCounts::predicted);
    if (std::ranges::find(labelled, entity) != labelled.end()) count(entity, &EntityCounts::right);
  }
}

}  // namespace

bool are_entity_tags(std::span<const std::string> names) {
  return std::ranges::all_of(names, [](const std::string& name) {
    return name == "O" ||
           (!name.empty() && std::string_view("BIES").find(name[0]) != std::string_view::npos &&
            (name.size() == 1 || name[1] == '-'));
  });
}

std::vector<Entity> entities_of(const Tags& tags) {
  std::vector<Entity> out;
  TagParts before;
  for (std::size_t i = 0; i < tags.size(); ++i) {
    const TagParts here = parts_of(tags[i]);
    const auto at = static_cast<std::int64_t>(i);
    if (begins_entity(before, here)) out.push_back({std::string(here.type), at, at});
    if (here.place != 'O' && !begins_entity(before, here)) out.back().last = at;
    before = here;
  }
  return out;
}

double EntityCounts::precision() const { return share(right, predicted); }
double EntityCounts::recall() const { return share(right, labelled); }
double EntityCounts::f1() const { return share(2 * right, predicted + labelled); }

TagScores tag_scores(std::span<const Tags> labels, std::span<const Tags> predictions) {
  require(labels.size() == predictions.size(), "there are tags of ", predictions.size(),
          " sentences, but labels of ", labels.size(), "; give as many of both");
  TagScores out;
  std::int64_t words = 0, right = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    require(labels[i].size() == predictions[i].size(), "sentence ", i + 1, " has ",
            predictions[i].size(), " tags, but ", labels[i].size(),
            " labels; give as many of both");
    for (std::size_t word = 0; word < labels[i].size(); ++word)
      right += labels[i][word] == predictions[i][word] ? 1 : 0;
    words += std::ssize(labels[i]);
    count_entities(labels[i], predictions[i], out);
  }
  out.accuracy = share(right, words);
  return out;
}

}  // namespace tessera
