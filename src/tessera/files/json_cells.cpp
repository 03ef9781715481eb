#include "tessera/files/json_cells.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/files/json_fault.h"
#include "tessera/files/table_file.h"

namespace tessera {

namespace {

/// Takes the wanted cells from the events of a parser. `path_` are the keys that lead to the value
/// at hand, with points between them.
class WantedCells final : public nlohmann::json_sax<nlohmann::json> {
 public:
  WantedCells(std::string_view line, std::span<const std::string> keys, const LinePlace& place,
              const CellRules& rules)
      : line_(line),
        keys_(keys),
        rules_(rules),
        needed_(keys.size() - (rules.last_may_lack ? 1 : 0)),
        place_(place),
        cells_(keys.size()),
        found_(keys.size()) {}

  std::vector<std::string> take() {
    for (std::size_t i = 0; i < needed_; ++i) {
      if (!found_[i])
        fail(Fault::Data, where(), " has no key '", printable(keys_[i]), "'; ",
             seen_.empty() ? "the object is empty"
                           : text("its keys are ", column_names_text(seen_)));
    }
    return std::move(cells_);
  }

  std::vector<std::string> take_keys() { return std::move(seen_); }

  bool null() final {
    if (open_ > 0) return nest("null");
    return lists_ || wanted_ < static_cast<std::ptrdiff_t>(needed_) ? other("null") : cell("");
  }
  bool boolean(bool value) final { return cell(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) final { return cell(text(value)); }
  bool number_unsigned(number_unsigned_t value) final { return cell(text(value)); }
  bool number_float(number_float_t, const string_t& written) final { return cell(written); }
  bool binary(binary_t&) final { return other("bytes"); }
  bool string(string_t& value) final {
    return cell(lists_ || open_ > 0 ? nlohmann::json(value).dump() : std::move(value));
  }
  bool key(string_t& value) final {
    if (open_ > 0) {
      nest(text(nlohmann::json(value).dump(), ":"));
      return first_ = true;
    }
    if (in_lists_ > 0) return true;
    path_.resize(prefixes_.back());
    if (prefixes_.size() > 1) path_ += '.';
    path_ += value;
    const auto found = std::ranges::find(keys_, path_);
    wanted_ = found == keys_.end() ? -1 : found - keys_.begin();
    if (seen_.size() < kMostSeen) seen_.push_back(path_.substr(0, kMostOfName));
    return true;
  }
  bool start_object(std::size_t) final {
    if (open_ > 0 || is_nested()) return begin_nest("{");
    if (lists_) other("an object");
    if (in_lists_ > 0) return in_lists_++, true;
    if (wanted_ >= 0) other("an object");
    prefixes_.push_back(path_.size());
    return true;
  }
  bool end_object() final {
    if (open_ > 0) return end_nest('}');
    if (in_lists_ > 0) return in_lists_--, true;
    path_.resize(prefixes_.back());
    prefixes_.pop_back();
    return true;
  }
  bool start_array(std::size_t) final {
    if (open_ > 0 || is_nested()) return begin_nest("[");
    const bool wanted_last = wanted_ >= 0 && wanted_ + 1 == std::ssize(keys_);
    if (lists_) other("a list");
    if (in_lists_ == 0 && wanted_last && rules_.last_may_be_list)
      lists_ = true;
    else if (in_lists_ == 0)
      other("a list");
    ++in_lists_;
    return true;
  }
  bool end_array() final {
    if (open_ > 0) return end_nest(']');
    --in_lists_;
    if (!lists_) return true;
    lists_ = false;
    return cell(text("[", join(items_), "]"));
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::json::exception&) final {
    fail(Fault::Data, where(), ", column ", at, ": ",
         json_fault(line_, "a file with an object in each line, like {\"text\": \"...\"}"));
  }

 private:
  static constexpr std::size_t kMostSeen = 32, kMostOfName = 64;

  std::string where() const { return text("'", *place_.path, "' line ", place_.line); }
  void require_object() const {
    if (prefixes_.empty())
      fail(Fault::Data, where(), " is JSON, but not an object; give a file with one object per ",
           "line, like {\"text\": \"...\"}");
  }
  /// The value at hand is wanted, whatever it is.
  bool is_nested() const {
    if (wanted_ < 0 || in_lists_ > 0) return false;
    const std::string& key = keys_[static_cast<std::size_t>(wanted_)];
    return std::ranges::find(rules_.nested, key) != rules_.nested.end();
  }
  /// Adds a value, or the beginning of one, to the JSON of the cell.
  bool nest(const std::string& json) {
    nested_ += text(first_ ? "" : ",", json);
    first_ = false;
    return true;
  }
  bool begin_nest(const char* bracket) {
    if (open_++ == 0) nested_.clear(), first_ = true;
    nest(bracket);
    return first_ = true;
  }
  bool end_nest(char bracket) {
    nested_ += bracket;
    first_ = false;
    return --open_ > 0 || cell(std::move(nested_));
  }
  bool cell(std::string value) {
    if (open_ > 0) return nest(value);
    if (lists_) return items_.push_back(std::move(value)), true;
    if (in_lists_ > 0) return true;
    require_object();
    if (wanted_ < 0) return true;
    cells_[static_cast<std::size_t>(wanted_)] = std::move(value);
    found_[static_cast<std::size_t>(wanted_)] = true;
    wanted_ = -1;
    return true;
  }
  bool other(const char* kind) {
    if (lists_)
      fail(Fault::Data, where(), ": the list of key '", printable(keys_.back()), "' has ", kind,
           ", and texts, numbers, true and false are expected; give it these");
    if (in_lists_ > 0) return true;
    require_object();
    if (wanted_ >= 0)
      fail(Fault::Data, where(), ": key '", printable(keys_[static_cast<std::size_t>(wanted_)]),
           "' is ", kind, " where a text, a number, true or false is expected; give it one, or ",
           "remove the line");
    return true;
  }

  std::string_view line_;
  std::span<const std::string> keys_;
  const CellRules& rules_;
  std::size_t needed_;  // so many of the keys must be there
  const LinePlace& place_;
  std::vector<std::string> cells_;
  std::vector<bool> found_;
  std::vector<std::string> seen_;
  std::string path_;
  std::vector<std::size_t> prefixes_;  // of each object that is open: the length of its own path
  std::int64_t in_lists_ = 0;          // lists, and objects in them, that are open
  bool lists_ = false;                 // the list that is open is wanted, of ...
  std::vector<std::string> items_;
  std::int64_t open_ = 0;       // lists and objects of the nested cell at hand
  std::string nested_;          // its JSON so far
  bool first_ = true;           // no comma stands before what follows
  std::ptrdiff_t wanted_ = -1;  // the key of the value that follows; -1: none that is wanted
};

}  // namespace

namespace {

WantedCells read_line(std::string_view line, std::span<const std::string> keys,
                      const LinePlace& place, const CellRules& rules) {
  if (const std::size_t bad = find_invalid_utf8(line); bad != std::string_view::npos)
    fail(Fault::Data, "'", *place.path, "' line ", place.line, ", column ", bad + 1,
         ": the byte there is not UTF-8; convert the file to UTF-8");
  WantedCells wanted(line, keys, place, rules);
  nlohmann::json::sax_parse(line.begin(), line.end(), &wanted);
  return wanted;
}

}  // namespace

std::vector<std::string> cells_in_line(std::string_view line, std::span<const std::string> keys,
                                       const LinePlace& place, const CellRules& rules) {
  return read_line(line, keys, place, rules).take();
}

std::vector<std::string> keys_in_line(std::string_view line, const LinePlace& place) {
  return read_line(line, {}, place, {}).take_keys();
}

}  // namespace tessera
