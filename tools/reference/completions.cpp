/// Forms that shells read.

#include <functional>

#include "forms.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

/// The word behind the program's name; empty: the page of the program itself.
std::string command_of(const HelpPage& page) {
  const std::size_t blank = page.command.find(' ');
  return blank == std::string::npos ? "" : page.command.substr(blank + 1);
}

bool takes_path(const HelpEntry& entry) {
  for (const char* word : {"FILE", "FOLDER", "PATH", "DIR", "PREFIX"}) {
    if (entry.value.find(word) != std::string::npos) return true;
  }
  return false;
}

void each_flag(const HelpPage& page, const std::function<void(const HelpEntry&)>& what) {
  for (const HelpSection& section : page.sections) {
    for (const HelpEntry& entry : section.entries) {
      if (entry.name.starts_with("--")) what(entry);
    }
  }
}

std::string flags_of(const HelpPage& page) {
  std::vector<std::string> out;
  each_flag(page, [&](const HelpEntry& entry) {
    for (const std::string& name : entry.names()) out.push_back(name);
  });
  out.emplace_back("--help");
  return join(out, " ");
}

std::string commands_of(std::span<const HelpPage> pages) {
  std::vector<std::string> out;
  for (const HelpPage& page : pages) {
    if (!command_of(page).empty()) out.push_back(command_of(page));
  }
  return join(out, " ");
}

/// Cases of a shell: the values of a flag that is before the cursor.
std::string bash_values(const HelpPage& page) {
  std::string out;
  each_flag(page, [&](const HelpEntry& entry) {
    if (entry.value.empty()) return;
    const std::vector<std::string> words = entry.words();
    out += text("        ", join(entry.names(), "|"), ") ",
                words.empty() ? "" : text("words=\"", join(words, " "), "\"; "),
                takes_path(entry) ? "files=1; " : "", "return ;;\n");
  });
  return out;
}

/// The first sentence of help, without what a shell would read.
std::string short_help(const HelpEntry& entry) {
  std::string out;
  for (const char c : entry.help.substr(0, entry.help.find_first_of(";:[("))) {
    if (c != '\'' && c != '"' && c != '`' && c != '\\' && c != '$') out += c;
  }
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

}  // namespace

std::string bash_completion(const std::string& program, std::span<const HelpPage> pages) {
  std::string out =
      text("# bash completion of ", program, "\n_", program, "_of()\n{\n",
           "    # The command, and the word before the cursor: sets words, or files.\n",
           "    case $1 in\n");
  for (const HelpPage& page : pages) {
    out +=
        text("      '", command_of(page), "')\n        case $2 in\n", bash_values(page),
             "        esac\n        words=\"",
             command_of(page).empty() ? commands_of(pages) + " " : "", flags_of(page), "\" ;;\n");
  }
  out += text("      *) words=\"", commands_of(pages), " version help\" ;;\n    esac\n}\n_",
              program, R"(()
{
    local words= files= command= word=${COMP_WORDS[COMP_CWORD]} i
    for ((i = 1; i < COMP_CWORD; ++i)); do
        case ${COMP_WORDS[i]} in
            --) command=; ;;
            -*) [ -n "$command" ] || break ;;
            *) [ -n "$command" ] || command=${COMP_WORDS[i]} ;;
        esac
    done
    _)",
              program, R"(_of "$command" "${COMP_WORDS[COMP_CWORD-1]}"
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    if [ -n "$files" ] || { [ -n "$command" ] && [ "${word#-}" = "$word" ] && [ ${#COMPREPLY[@]} -eq 0 ]; }; then
        compopt -o filenames 2>/dev/null
        COMPREPLY+=($(compgen -f -- "$word"))
    fi
}
complete -F _)",
              program, " ", program, "\n");
  return out;
}

std::string zsh_completion(const std::string& program, std::span<const HelpPage> pages) {
  std::string out = text("#compdef ", program, "\n\n_", program, "() {\n  local -a flags\n",
                         "  if (( CURRENT == 2 )); then\n    local -a commands=(\n");
  for (const HelpPage& page : pages) {
    if (!command_of(page).empty())
      out += text("      '", command_of(page), ":", short_help({"", "", page.summary}), "'\n");
  }
  out += "    )\n    _describe command commands\n  fi\n  case $words[2] in\n";
  for (const HelpPage& page : pages) {
    const std::string command = command_of(page);
    out += text("    ", command.empty() ? "*" : command, ")\n      flags=(\n");
    each_flag(page, [&](const HelpEntry& entry) {
      std::string value;
      if (!entry.value.empty()) {
        const std::vector<std::string> words = entry.words();
        value = !words.empty()      ? text(":value:(", join(words, " "), ")")
                : takes_path(entry) ? ":path:_files"
                                    : ":value: ";
      }
      std::string help = short_help(entry);
      std::erase_if(help, [](char c) { return c == ']'; });
      for (const std::string& name : entry.names())
        out +=
            text("        '", name, entry.value.empty() ? "" : "=", "[", help, "]", value, "'\n");
    });
    out += "      ) ;;\n";
  }
  if (std::none_of(pages.begin(), pages.end(),
                   [](const HelpPage& p) { return command_of(p).empty(); }))
    out += "    *) return ;;\n";
  out += "  esac\n  (( ${#flags} )) && _arguments -S \"$flags[@]\" '*:path:_files'\n}\n\n";
  return out + text("_", program, " \"$@\"\n");
}

std::string fish_completion(const std::string& program, std::span<const HelpPage> pages) {
  std::string out = text("# fish completion of ", program, "\n");
  for (const HelpPage& page : pages) {
    const std::string command = command_of(page);
    if (!command.empty())
      out += text("complete -c ", program, " -f -n __fish_use_subcommand -a ", command, " -d '",
                  short_help({"", "", page.summary}), "'\n");
  }
  for (const HelpPage& page : pages) {
    const std::string command = command_of(page);
    const std::string where =
        command.empty() ? "" : text(" -n '__fish_seen_subcommand_from ", command, "'");
    each_flag(page, [&](const HelpEntry& entry) {
      const std::vector<std::string> words = entry.words();
      for (const std::string& name : entry.names())
        out += text("complete -c ", program, where, " -l ", name.substr(2),
                    entry.value.empty() ? ""
                    : !words.empty()    ? text(" -x -a '", join(words, " "), "'")
                    : takes_path(entry) ? " -r -F"
                                        : " -x",
                    " -d '", short_help(entry), "'\n");
    });
  }
  return out;
}

}  // namespace tessera
