#include "tessera/corpora/sgm.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/base/unicode.h"
#include "tessera/base/utf8.h"

namespace tessera {

namespace {

constexpr std::array<std::pair<std::string_view, char>, 5> kEntities = {
    {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}}};

struct Tag {
  std::string name;        // in small letters, with the slash of an end tag
  std::string_view inner;  // attributes
  std::int64_t line = 0;
};

std::string unescaped(std::string_view from);
/// The value of `name="value"`, with quotes of either kind or none.
std::optional<std::string> attribute(std::string_view inner, std::string_view name);

class SgmReader {
 public:
  SgmReader(std::string_view bytes, const std::string& path) : bytes_(bytes), path_(path) {}
  SgmSet read();

 private:
  /// Text up to the next tag, of which nothing may stand outside of segments.
  void pass_text();
  /// A comment, or a document type with all that it declares. False where neither begins here.
  bool pass_declaration();
  Tag tag();
  void open_set(const Tag& tag);
  void open_document(const Tag& tag);
  void segment(const Tag& tag);
  /// Where the segment ends behind the end tag at `at`: text has none.
  void refuse_tag_within(std::size_t at, const std::string& id, std::int64_t line) const;
  void close(const Tag& tag);
  std::string required(const Tag& tag, std::string_view name, std::string_view example) const;
  std::string_view take(std::size_t size);
  template <typename... Parts>
  [[noreturn]] void bad(std::int64_t line, const Parts&... parts) const {
    fail(Fault::Data, "'", path_, "', line ", line, ": ", text(parts...));
  }

  std::string_view bytes_;
  const std::string& path_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  std::optional<SgmSet> set_;
  std::int64_t set_line_ = 0;    // of the set that is open; 0: none is
  SgmDocument* open_ = nullptr;  // the document that is open
  std::set<std::string> documents_, segments_;
};

}  // namespace

SgmSet parse_sgm(std::string_view bytes, const std::string& path) {
  return SgmReader(bytes, path).read();
}

std::string one_blank(std::string_view utf8) {
  std::string out;
  bool blank = false;
  for (std::size_t at = 0; at < utf8.size();) {
    const CodePoint c = code_point_at(utf8, at);
    const auto size = static_cast<std::size_t>(std::max(c.size, 1));
    if (c.size > 0 && (kind_of(c.value) == CharacterKind::Blank || c.value < 0x20 ||
                       (c.value >= 0x7F && c.value < 0xA0))) {
      blank = true;
    } else {
      if (blank && !out.empty()) out += ' ';
      blank = false;
      out += utf8.substr(at, size);
    }
    at += size;
  }
  return out;
}

std::string small_letters(std::string_view from) {
  std::string out(from);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

namespace {

SgmSet SgmReader::read() {
  const std::size_t broken = find_invalid_utf8(bytes_);
  if (broken != std::string_view::npos)
    bad(std::count(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(broken), '\n') + 1,
        "byte ", broken, " of the file is not UTF-8; convert the file to UTF-8");
  if (starts_with(bytes_, kByteOrderMark)) at_ = kByteOrderMark.size();
  for (pass_text(); at_ < bytes_.size(); pass_text()) {
    if (pass_declaration()) continue;
    const Tag next = tag();
    if (next.name == "srcset" || next.name == "refset" || next.name == "tstset") {
      open_set(next);
    } else if (next.name == "doc") {
      open_document(next);
    } else if (next.name == "seg") {
      segment(next);
    } else if (next.name.front() == '/') {
      close(next);
    }
  }
  if (set_line_ > 0)
    bad(set_line_,
        "the set that begins here is not closed, so the file may have lost its end; download the "
        "file again");
  if (!set_)
    fail(Fault::Data, "'", path_,
         "' has no <srcset> or <refset>; give .sgm files of WMT, or take this one out of the "
         "folder");
  return std::move(*set_);
}

std::string_view SgmReader::take(std::size_t size) {
  const std::string_view out = bytes_.substr(at_, size);
  at_ += out.size();
  line_ += std::count(out.begin(), out.end(), '\n');
  return out;
}

void SgmReader::pass_text() {
  const std::size_t end = std::min(bytes_.find('<', at_), bytes_.size());
  for (const std::string& line : split(bytes_.substr(at_, end - at_), '\n')) {
    if (!one_blank(line).empty())
      bad(line_, "'", std::string_view(line).substr(0, 60),
          "' is outside any segment; put it between <seg id=\"...\"> and </seg>");
    if (at_ < end) take(std::min(line.size() + 1, end - at_));
  }
}

bool SgmReader::pass_declaration() {
  const std::string_view rest = bytes_.substr(at_);
  if (starts_with(rest, "<!--")) {
    const std::size_t end = rest.find("-->", 4);
    if (end == std::string_view::npos)
      bad(line_, "the comment that begins here is not closed; write --> at its end");
    take(end + 3);
    return true;
  }
  if (!starts_with(rest, "<!")) return false;
  std::size_t at = 0;
  int open = 0;  // tags
  do {
    at = rest.find_first_of("<>", at);
    if (at == std::string_view::npos) return false;
    open += rest[at++] == '<' ? 1 : -1;
  } while (open > 0);
  take(at);
  return true;
}

Tag SgmReader::tag() {
  const std::int64_t line = line_;
  const std::size_t end = bytes_.find_first_of("<>", at_ + 1);
  if (end == std::string_view::npos || bytes_[end] != '>')
    bad(line, "the tag '",
        bytes_.substr(at_, std::min<std::size_t>(bytes_.find('\n', at_) - at_, 60)),
        "' is not closed; write > at its end");
  const std::string_view whole = take(end + 1 - at_), inner = whole.substr(1, whole.size() - 2);
  const std::size_t name = std::min(inner.find_first_of(" \t\r\n"), inner.size());
  if (name == 0) bad(line, "a tag without a name; write its name behind <");
  return {small_letters(inner.substr(0, name)), inner.substr(name), line};
}

void SgmReader::open_set(const Tag& tag) {
  if (set_)
    bad(tag.line, "a second set in one file; put each <srcset> or <refset> into a file of its own");
  if (tag.name == "tstset")
    bad(tag.line,
        "a <tstset> is a system's output, neither source nor reference; take the file out of the "
        "folder");
  set_.emplace();
  set_line_ = tag.line;
  set_->kind = tag.name == "srcset" ? SgmKind::Source : SgmKind::Reference;
  set_->id = required(tag, "setid", "newstest2014");
  const char* const name = set_->kind == SgmKind::Source ? "srclang" : "trglang";
  set_->language = small_letters(attribute(tag.inner, name).value_or(""));
  if (set_->language == "any") set_->language.clear();
}

void SgmReader::open_document(const Tag& tag) {
  if (set_line_ == 0)
    bad(tag.line, "a document outside a set; begin the file with <srcset> or <refset>");
  if (open_ != nullptr)
    bad(open_->line, "document ", open_->id, " is not closed before the next one in line ",
        tag.line, "; write </doc> at its end");
  SgmDocument document{required(tag, "docid", "1009-lemondefr"), tag.line, {}};
  if (!documents_.insert(document.id).second)
    bad(tag.line, "document ", document.id, " appears twice; remove one");
  segments_.clear();
  open_ = &set_->documents.emplace_back(std::move(document));
}

void SgmReader::segment(const Tag& tag) {
  if (open_ == nullptr)
    bad(tag.line, "a segment outside a document; write <doc docid=\"...\"> before it");
  const std::string id = required(tag, "id", "1");
  if (!segments_.insert(id).second)
    bad(tag.line, "segment ", id, " of document ", open_->id,
        " appears twice; remove one, or renumber them");
  const std::size_t end = bytes_.find('<', at_);
  std::size_t close = end;
  while (close != std::string_view::npos && bytes_.substr(close, 2) != "</") {
    if (small_letters(bytes_.substr(close, 4)) == "<seg") break;
    close = bytes_.find('<', close + 1);  // a bare < of the text
  }
  if (close == std::string_view::npos || small_letters(bytes_.substr(close, 6)) != "</seg>") {
    refuse_tag_within(close, id, tag.line);
    bad(tag.line, "segment ", id, " of document ", open_->id,
        " is not closed; write </seg> at its end");
  }
  std::string words = one_blank(unescaped(take(close - at_)));
  take(std::string_view("</seg>").size());
  open_->segments.push_back({id, std::move(words), tag.line});
}

void SgmReader::refuse_tag_within(std::size_t at, const std::string& id, std::int64_t line) const {
  const auto begins = [&](std::size_t where, std::string_view tag) {
    return small_letters(bytes_.substr(where, tag.size())) == tag;
  };
  std::size_t end = at;
  while (end != std::string_view::npos && !begins(end, "</seg>")) {
    if (begins(end, "<seg") || begins(end, "</doc") || begins(end, "<doc")) return;
    end = bytes_.find('<', end + 1);
  }
  if (end == std::string_view::npos) return;
  const std::string_view found = bytes_.substr(at, std::min<std::size_t>(end - at, 60));
  const std::string name(found.substr(2, std::min(found.find('>'), found.size()) - 2));
  bad(line, "segment ", id, " of document ", open_->id, " has the tag </", name,
      "> in its text; remove it and the <", name,
      "> before it, or write &lt; for < where they are text");
}

void SgmReader::close(const Tag& tag) {
  const auto closes_nothing = [&] {
    bad(tag.line, "<", tag.name, "> closes nothing; remove it, or add the missing tag before it");
  };
  if (tag.name == "/seg") closes_nothing();
  if (tag.name == "/doc") {
    if (open_ == nullptr) closes_nothing();
    open_ = nullptr;
  }
  if (tag.name != "/srcset" && tag.name != "/refset") return;
  if (set_line_ == 0 || (tag.name == "/srcset") != (set_->kind == SgmKind::Source))
    closes_nothing();
  if (open_ != nullptr)
    bad(open_->line, "document ", open_->id, " is not closed before the end of the set in line ",
        tag.line, "; write </doc> at its end");
  set_line_ = 0;
}

std::string SgmReader::required(const Tag& tag, std::string_view name,
                                std::string_view example) const {
  const std::string out = attribute(tag.inner, name).value_or("");
  if (out.empty())
    bad(tag.line, "<", tag.name, "> has no ", name, "; give it one, like ", name, "=\"", example,
        "\"");
  return out;
}

std::string unescaped(std::string_view from) {
  std::string out;
  out.reserve(from.size());
  for (std::size_t at = 0; at < from.size();) {
    const auto entity = std::ranges::find_if(
        kEntities, [&](const auto& e) { return starts_with(from.substr(at), e.first); });
    out += entity == kEntities.end() ? from[at] : entity->second;
    at += entity == kEntities.end() ? 1 : entity->first.size();
  }
  return out;
}

std::optional<std::string> attribute(std::string_view inner, std::string_view name) {
  constexpr std::string_view kBlank = " \t\r\n";
  while (!(inner = inner.substr(std::min(inner.find_first_not_of(kBlank), inner.size()))).empty()) {
    const std::size_t key_end = std::min(inner.find_first_of(" \t\r\n="), inner.size());
    const std::string key = small_letters(inner.substr(0, key_end));
    inner.remove_prefix(key_end);
    if (inner.empty() || inner.front() != '=') {
      if (key.empty()) return {};
      continue;
    }
    inner.remove_prefix(1);
    const bool quoted = !inner.empty() && (inner.front() == '"' || inner.front() == '\'');
    const char quote = quoted ? inner.front() : ' ';
    if (quoted) inner.remove_prefix(1);
    const std::size_t end =
        std::min(quoted ? inner.find(quote) : inner.find_first_of(kBlank), inner.size());
    const std::string value = unescaped(inner.substr(0, end));
    inner.remove_prefix(std::min(end + (quoted ? 1 : 0), inner.size()));
    if (key == name) return value;
  }
  return {};
}

}  // namespace

}  // namespace tessera
