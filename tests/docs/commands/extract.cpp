#include "docs/commands/extract.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <set>
#include <sstream>

namespace tessera::test {
namespace {

const std::string kOurs =
    R"(((\.\./)*(\./)?build/)?tessera|(build/)?rapidformer|\./dev|(\.\./)*build/\w+|P)";
const std::string kOthers =
    "ninja|cmake|ctest|bash|cd|hf|mpirun|torchrun|srun|msrun|tensorboard|python3?|"
    R"((bench|tools|tests)/\S+\.(py|sh)|\S+/run\w*\.sh|run\w*\.sh|test\.sh)";
const std::string kShell =
    "umask|ssh|curl|tar|head|tail|awk|sed|cut|cat|less|export|for|if|cp|mkdir|sort|git|pip|apt-get";
const std::string kVariables = R"((?:[A-Z_]+=\S+ +)*)";

const std::regex& at_line_start() {
  static const std::regex re("^" + kVariables + "(" + kOurs + "|" + kOthers + "|" + kShell +
                             ")( .*|$)");
  return re;
}
const std::regex& in_a_sentence() {
  static const std::regex re("^" + kVariables + "(" + kOurs + "|" + kOthers + ") .*");
  return re;
}

struct Line {
  int number = 0;
  std::string text;
};

struct Block {
  std::string language;
  std::vector<Line> lines;
  bool next = false;  // nothing but blank lines between it and the block before
};

struct Page {
  std::vector<Block> blocks;
  std::vector<Line> prose;
};

/// A fence may be indented, as in a list; so are the lines of its block then.
Page parse(const std::string& text) {
  Page out;
  std::istringstream in(text);
  bool inside = false, prose_between = true;
  std::size_t indent = 0;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin != std::string::npos && line.compare(begin, 3, "```") == 0) {
      inside = !inside;
      if (inside) out.blocks.push_back({line.substr(begin + 3), {}, !prose_between});
      prose_between = false;
      indent = begin;
    } else if (inside) {
      const std::size_t cut = std::min({indent, begin, line.size()});
      out.blocks.back().lines.push_back({number, line.substr(cut)});
    } else {
      prose_between = prose_between || !line.empty();
      out.prose.push_back({number, line});
    }
  }
  return out;
}

/// Lines that end in a backslash, joined with the next; prompts stay.
std::vector<Line> joined(const std::vector<Line>& lines) {
  std::vector<Line> out;
  bool open = false;
  for (const Line& line : lines) {
    if (open) {
      out.back().text += "\n" + line.text;
    } else {
      out.push_back(line);
    }
    open = line.text.ends_with('\\');
  }
  return out;
}

/// False: none of its lines is a command.
bool add_commands(const Block& block, std::vector<Documented>& out) {
  static const std::regex prompt(R"(^(node\d+)?\$ )");
  const std::vector<Line> lines = joined(block.lines);
  bool any = false;
  std::vector<std::string> prompts, texts;
  for (const Line& line : lines) {
    std::smatch found;
    const std::string first = line.text.substr(0, line.text.find('\n'));
    prompts.push_back(std::regex_search(first, found, prompt) ? found.str() : "");
    texts.push_back(line.text.substr(prompts.back().size()));
    any = any || std::regex_match(texts.back().substr(0, texts.back().find('\n')), at_line_start());
  }
  if (!any) return false;
  const bool prompted = std::ranges::find(prompts, "$ ") != prompts.end();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (prompted && prompts[i].empty()) {
      if (!out.empty()) out.back().output.push_back(texts[i]);
      continue;
    }
    if (texts[i].empty() || texts[i].starts_with('#')) continue;
    const bool of_a_host = prompts[i].starts_with("node");
    const bool beside = of_a_host && i > 0 && prompts[i - 1].starts_with("node");
    if (!beside) out.push_back({lines[i].number, {}, lines[0].number, {}});
    out.back().texts.push_back(texts[i]);
  }
  return true;
}

void add_blocks(const std::vector<Block>& blocks, std::vector<Documented>& out) {
  bool commands = false;  // in the block before
  for (const Block& block : blocks) {
    const bool plain = block.language.empty();
    const bool shell = plain || block.language == "sh" || block.language == "bash";
    const bool told = commands && plain && block.next;
    commands = shell && add_commands(block, out);
    if (commands || !told) continue;
    for (const Line& line : block.lines) out.back().output.push_back(line.text);
  }
}

void add_prose(const std::vector<Line>& prose, std::vector<Documented>& out) {
  // Code may go on in the next line, so paragraphs are searched.
  std::set<std::string> seen;
  for (std::size_t i = 0; i < prose.size();) {
    std::string paragraph;
    const std::size_t begin = i;
    for (; i < prose.size() && !prose[i].text.empty() &&
           (i == begin ||
            (prose[i].number == prose[i - 1].number + 1 && !prose[i].text.starts_with("|")));
         ++i) {
      paragraph += (i == begin ? "" : "\n") + prose[i].text;
    }
    if (i == begin) ++i;
    for (std::size_t at = 0; (at = paragraph.find('`', at)) != std::string::npos;) {
      const std::size_t end = paragraph.find('`', at + 1);
      if (end == std::string::npos) break;
      std::string code;
      for (char c : paragraph.substr(at + 1, end - at - 1)) {
        const bool blank = c == '\n' || c == ' ';
        if (!blank || !code.ends_with(' ')) code += blank ? ' ' : c;
      }
      const auto lines_before =
          std::count(paragraph.begin(), paragraph.begin() + static_cast<std::ptrdiff_t>(at), '\n');
      if (std::regex_match(code, in_a_sentence()) && seen.insert(code).second) {
        out.push_back({prose[begin].number + static_cast<int>(lines_before), {code}, 0, {}});
      }
      at = end + 1;
    }
  }
}

}  // namespace

std::vector<Documented> documented_commands(const std::string& page) {
  const Page parsed = parse(page);
  std::vector<Documented> out;
  add_blocks(parsed.blocks, out);
  add_prose(parsed.prose, out);
  std::stable_sort(out.begin(), out.end(),
                   [](const Documented& a, const Documented& b) { return a.line < b.line; });
  return out;
}

/// "..." in `wanted`, with blanks around it, is any text.
bool fits(const std::string& wanted, const std::string& line) {
  const std::size_t dots = wanted.find(" ...");
  if (dots == std::string::npos) return wanted == line;
  if (!line.starts_with(wanted.substr(0, dots))) return false;
  const std::string rest = wanted.substr(std::min(dots + 5, wanted.size()));
  if (rest.empty()) return true;
  for (std::size_t i = dots; i < line.size(); ++i) {
    if (fits(rest, line.substr(i))) return true;
  }
  return false;
}

std::vector<std::string> not_printed(const std::vector<std::string>& shown,
                                     const std::string& printed) {
  static const std::regex number(
      R"([+-]?[0-9][0-9.,:]*(e[+-]?[0-9]+)?( ([KMGT]i)?B\b| [kMGT]?FLOP\b)?)"),
      blanks(" +"), dots(R"(\.\.\.)"), plural(R"(([a-z])s\b)"),
      share(R"(#%| -(?= ))");  // "MFU 49%", or "MFU -" where a busy machine told too little
  const auto plain = [](const std::string& line) {
    // Dots behind a number are no part of it.
    std::string out = std::regex_replace(std::regex_replace(line, dots, " ... "), plural, "$1");
    out = std::regex_replace(std::regex_replace(out, number, "#"), share, " #");
    out = std::regex_replace(out, blanks, " ");
    const std::size_t begin = out.find_first_not_of(' ');
    return begin == std::string::npos ? ""
                                      : out.substr(begin, out.find_last_not_of(' ') + 1 - begin);
  };
  std::vector<std::string> out;
  std::istringstream in(printed);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(plain(line));
  auto at = lines.begin();
  for (const std::string& line : shown) {
    const std::string wanted = plain(line);
    if (wanted.empty() || wanted == "...") continue;
    const auto found =
        std::find_if(at, lines.end(), [&](const std::string& one) { return fits(wanted, one); });
    if (found == lines.end()) {
      out.push_back(line);
    } else {
      at = found + 1;
    }
  }
  return out;
}

std::string block_beginning_with(const std::string& page, const std::string& first_line) {
  for (const Block& block : parse(page).blocks) {
    if (block.lines.empty() || !block.lines[0].text.starts_with(first_line)) continue;
    std::string out;
    for (const Line& line : block.lines) out += line.text + "\n";
    return out;
  }
  return {};
}

std::vector<Flag> flags_in(const std::string& page) {
  static const std::regex flag(R"(--[A-Za-z][A-Za-z0-9_-]*[A-Za-z0-9])");
  std::vector<Flag> out;
  std::istringstream in(page);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    for (std::sregex_iterator i(line.begin(), line.end(), flag), end; i != end; ++i) {
      // "a --- b", "what---save-holds" of a link to a heading
      const auto at = static_cast<std::size_t>(i->position());
      const char before = at == 0 ? ' ' : line[at - 1];
      if (before != '-' && std::isalnum(static_cast<unsigned char>(before)) == 0) {
        out.push_back({number, i->str()});
      }
    }
  }
  return out;
}

bool is_name(const std::string& text) {
  static const std::regex name(R"((build/)?(tessera|rapidformer) [a-z_]+)");
  static const std::regex whole("tessera (doctor|version)");
  return std::regex_match(text, name) && !std::regex_match(text, whole);
}

bool has_blanks(const std::string& text) {
  static const std::regex blank(
      R"((^| )([A-Z]{2}[A-Z_]*|[NP]|MASTER_ADDR=host|--mpi=pmix)(\.[a-z]+|/\S+)?(?=[ ,]|$)|--FLAG|\.\.\.|\[|--[a-z]+ [a-z]+\|[a-z])");
  return std::regex_search(text, blank);
}

}  // namespace tessera::test
