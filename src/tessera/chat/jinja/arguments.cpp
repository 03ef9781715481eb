#include "tessera/chat/jinja/arguments.h"

#include <algorithm>

#include "tessera/base/text.h"

namespace tessera::jinja {

Bound::Bound(std::string_view of, const Arguments& arguments, std::string_view parameters)
    : of_(of) {
  const std::size_t cut = std::min(parameters.find(';'), parameters.size());
  std::size_t due = 0;
  for (const std::string_view part :
       {parameters.substr(0, cut), parameters.substr(std::min(cut + 1, parameters.size()))}) {
    for (const std::string& name : split(part, ' ')) {
      if (!name.empty()) names_.push_back(name);
    }
    if (part.data() == parameters.data()) due = std::max(due, cut == 0 ? 0 : names_.size());
  }
  values_.resize(names_.size());
  if (arguments.given.size() > names_.size())
    bad(of, " has ", names_.size(), " arguments at most, not ", arguments.given.size());
  for (std::size_t i = 0; i < arguments.given.size(); ++i) values_[i] = arguments.given[i];
  for (const auto& [name, value] : arguments.named) {
    const auto at = std::ranges::find(names_, name);
    if (at == names_.end()) bad(of, " has no argument '", name, "'; it is not supported");
    std::optional<Value>& slot = values_[static_cast<std::size_t>(at - names_.begin())];
    if (slot) bad(of, " has the argument '", name, "' twice");
    slot = value;
  }
  for (std::size_t i = 0; i < due; ++i) {
    if (!values_[i]) bad(of, " lacks the argument '", names_[i], "'");
  }
}

void Bound::wrong(std::size_t i, std::string_view due) const {
  bad(of_, ": '", names_[i], "' is ", kind_text(*values_[i]), ", not ", due);
}

const TextValue& Bound::text(std::size_t i) const {
  if (!values_[i]->is(Kind::Text)) wrong(i, "a text");
  return *values_[i]->text;
}

std::int64_t Bound::whole(std::size_t i, std::int64_t otherwise) const {
  if (!values_[i]) return otherwise;
  if (!values_[i]->is_whole()) wrong(i, "a whole number");
  return values_[i]->as_whole();
}

bool Bound::truth(std::size_t i, bool otherwise) const {
  return values_[i] ? is_true(*values_[i]) : otherwise;
}

std::optional<std::string_view> Bound::some_text(std::size_t i) const {
  if (!values_[i] || values_[i]->is(Kind::None)) return std::nullopt;
  return text(i).bytes;
}

}  // namespace tessera::jinja
