#include <unistd.h>

#include <iostream>
#include <optional>

#include "tessera/apps/chat_session.h"
#include "tessera/apps/command.h"
#include "tessera/apps/writer.h"
#include "tessera/base/text.h"
#include "tessera/data/chat_form.h"

namespace tessera {

namespace {

struct ChatRequest {
  RanksCommand command{.name = "chat", .config = {}, .problems = {}};
  std::vector<std::string> notices;
  std::string checkpoint;
  std::int64_t context = 0;  // 0: the model's
  ChatOptions options;
  bool warm = false, help = false;
};

std::vector<Flag> chat_flags() {
  std::vector<Flag> out = {
      checkpoint_flag(),
      {"system", {}, "TEXT", "the message of the system, which a dialogue begins with"},
      context_flag(),
  };
  for (const std::vector<Flag>& more :
       {drawing_flags(), {secret_file_flag()}, writing_device_flags()})
    out.insert(out.end(), more.begin(), more.end());
  return out;
}

ChatRequest read_chat_request(const Arguments& arguments, const OwnFamilies& families) {
  ChatRequest out;
  Problems& problems = out.command.problems;
  ParsedFlags parsed = parse_flags(arguments, chat_flags(), problems);
  out.help = parsed.help;
  out.command.secret_file = parsed.take_value("secret-file");
  Drawing drawing = take_drawing(parsed, problems);
  problems.add(tessera::problems(drawing.options), "--");
  out.warm = drawing.warm;
  out.context = take_context(parsed, problems);
  out.options = {.generate = std::move(drawing.options),
                 .stops = std::move(drawing.stops),
                 .system = parsed.take_value("system"),
                 .asks = isatty(STDIN_FILENO) != 0};
  out.checkpoint = take_checkpoint(parsed, "tessera chat runs/chat", problems);
  out.command.devices_given = parsed.find("devices") != nullptr;
  out.command.config = configure(parsed, problems, out.notices, families);
  return out;
}

/// Fits the request to the model.
Writer open_for_chat(ChatRequest& request, RunConfig& config, Problems& problems) {
  Writer out = open_writer(request.checkpoint, config, problems);
  if (out.writing.source > 0)
    fail(Fault::Usage, "'", request.checkpoint, "' is a model of family ", config.model.family,
         ", which writes from a source; a dialogue needs a decoder");
  problems.gather([&] { ChatForm{out.model.vocabulary}; });
  give_context(request.context, config.model, out.writing, problems);
  problems.raise();
  if (!request.warm) request.options.generate.temperature = out.writing.temperature;
  return out;
}

int chat_on(Communicator* launched, ChatRequest request, Console& console) {
  if (request.help) {
    console.out << "tessera chat PATH [FLAG...]\n\n"
                << "Answers each line of standard input, with the model's chat template. /clear "
                << "begins anew, /system TEXT does so with another system message.\n\n"
                << flags_help(chat_flags(), console.columns);
    return 0;
  }
  std::optional<Writer> writer;
  const WritingWords asked{&request.command, request.checkpoint, "tessera chat"};
  const WritingRun writing =
      find_writing(launched, asked, [&](RunConfig& config, Problems& problems) {
        writer.emplace(open_for_chat(request, config, problems));
        const std::vector<std::string>& more = writer->model.notices;
        request.notices.insert(request.notices.end(), more.begin(), more.end());
        return 1;
      });
  for (const std::string& notice : request.notices) console.err << "notice: " << notice << "\n";
  write_on_ranks(writing, asked, "", launched, console, writer,
                 [&](TextModel& model, RankGroup& group) {
                   chat(model, group, writer->model.vocabulary, request.options, std::cin, console);
                 });
  return 0;
}

}  // namespace

int chat_command(const Arguments& arguments, Console& console, const OwnFamilies& families) {
  const ChatRequest request = read_chat_request(arguments, families);
  return on_launched_ranks(request.command, console, [&](Communicator* launched, Console& mine) {
    return chat_on(launched, request, mine);
  });
}

}  // namespace tessera
