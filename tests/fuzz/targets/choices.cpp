/// Lines of a text and its choices.

#include "tessera/data/choices.h"

#include "fuzz/target.h"
#include "tessera/files/table_file.h"

namespace tessera::fuzz {

namespace {

void run(std::string_view input) {
  const std::vector<std::string> wanted = {"q", "c", "l"};
  const Table table =
      parse_table(input, "input", wanted, {.format = TableFormat::JsonLines, .nested = {"c"}});
  for (std::size_t row = 0; row < table.lines.size(); ++row) {
    const RowChoices choices = choices_of(table.columns[1][row], "here");
    require_choices(choices, "here");
    const auto label = right_choice(choices, table.columns[2][row], "here");
    then([&] {
      check(choices.texts.size() >= 2, "choices");
      check(choices.names.empty() || choices.names.size() == choices.texts.size(), "names");
      check(!label || (*label >= 0 && *label < std::ssize(choices.texts)), "a label");
    });
  }
}

}  // namespace

const Target kTarget = {1 << 20, 512, run};

}  // namespace tessera::fuzz
