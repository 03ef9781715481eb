#pragma once
/// Help pages in the forms that other programs read.

#include <map>
#include <span>
#include <string>

#include "help_page.h"

namespace tessera {

/// docs/reference/flags.md: all pages but the first, which lists them, with headings to link to. What
/// two commands take in the same words is told once.
std::string markdown(std::span<const HelpPage> pages);
/// docs/reference/families.md: a line for each.
std::string families_page();
/// A manual page of section 1, for man: by file name, as "tessera-train.1".
std::map<std::string, std::string> manual_pages(std::span<const HelpPage> pages);
/// Completion scripts of one program; `pages` are those of its commands and, of the program without
/// a command, its own.
std::string bash_completion(const std::string& program, std::span<const HelpPage> pages);
std::string zsh_completion(const std::string& program, std::span<const HelpPage> pages);
std::string fish_completion(const std::string& program, std::span<const HelpPage> pages);

}  // namespace tessera
