#include <cerrno>
#include <ctime>
#include <filesystem>
#include <optional>

#include "tessera/apps/command.h"
#include "tessera/apps/sample_source.h"
#include "tessera/apps/writer.h"
#include "tessera/base/text.h"
#include "tessera/launch/run_secret.h"
#include "tessera/launch/stop_signal.h"
#include "tessera/serve/completions_api.h"

namespace tessera {

namespace {

struct ServeRequest {
  RanksCommand command{.name = "serve", .config = {}, .problems = {}, .stops = true};
  std::vector<std::string> notices;
  std::string checkpoint, name, host, token_file;
  std::int64_t port = 8000, queue = 16, context = 0, seed = 1;
  bool help = false;
};

std::vector<Flag> serve_flags() {
  std::vector<Flag> out = {
      checkpoint_flag(),
      {"name", {}, "NAME", "the model as clients name it [the last part of PATH]"},
      {"host",
       {},
       "HOST",
       "listen at this name or address; one that other hosts reach needs --token-file "
       "[127.0.0.1]"},
      {"port", {}, "N", "listen at this port; 0: one that the system picks [8000]"},
      {"token-file",
       {},
       "FILE",
       "a file with the token that requests have to bring (Authorization: Bearer TOKEN); nobody "
       "else may read it"},
      {"queue", {}, "N", "how many requests may wait while one is answered [16]"},
      context_flag(),
      {"seed", {}, "N", "seed of the random draws of requests that bring none [1]"},
      secret_file_flag(),
  };
  for (Flag& flag : writing_device_flags()) out.push_back(std::move(flag));
  return out;
}

/// "chat" of "runs/chat/"
std::string last_part(const std::string& path) {
  return (std::filesystem::path(path) / "").parent_path().filename().string();
}

ServeRequest read_serve_request(const Arguments& arguments, const OwnFamilies& families) {
  ServeRequest out;
  Problems& problems = out.command.problems;
  ParsedFlags parsed = parse_flags(arguments, serve_flags(), problems);
  out.help = parsed.help;
  out.command.secret_file = parsed.take_value("secret-file");
  out.context = take_context(parsed, problems);
  const auto within = [&](const char* name, std::int64_t* to, std::int64_t least,
                          std::int64_t most) {
    if (take_number(parsed, name, problems, to) && (*to < least || *to > most))
      problems.add(text("--", name, " is ", *to, "; it must be from ", least, " to ", most),
                   {name});
  };
  within("port", &out.port, 0, 65535);
  within("queue", &out.queue, 0, 10'000);
  within("seed", &out.seed, 0, std::numeric_limits<std::int64_t>::max());
  out.host = parsed.take_value("host");
  if (out.host.empty()) out.host = "127.0.0.1";
  out.token_file = parsed.take_value("token-file");
  out.name = parsed.take_value("name");
  // Of a name that stands for a folder, the name.
  const std::string* const given = parsed.find("checkpoint");
  if (out.name.empty() && (given != nullptr || !parsed.words.empty()))
    out.name = last_part(given != nullptr ? *given : parsed.words.front());
  out.checkpoint = take_checkpoint(parsed, "tessera serve runs/first", problems);
  out.command.devices_given = parsed.find("devices") != nullptr;
  out.command.config = configure(parsed, problems, out.notices, families);
  return out;
}

/// Before the model is read, which takes longer.
process::Socket listen_for(const ServeRequest& request) {
  std::string why;
  const std::vector<process::Endpoint> found =
      process::addresses_of(request.host, static_cast<int>(request.port), why);
  require(!found.empty(), "--host ", request.host, " is no host: ", why);
  const process::Endpoint& where = found.front();
  require(where.loopback() || !request.token_file.empty(), "--host ", request.host,
          " can be reached from other hosts, which needs a token: give --token-file FILE; make it ",
          "with: umask 077; head -c 32 /dev/urandom | base64 > FILE");
  process::Socket out = process::listen_at(where);
  if (!out.open())
    fail(Fault::Resource, "cannot listen at ", to_text(where), ": ", process::error_text(errno),
         errno == EADDRINUSE ? "; another program does: give another --port, or 0"
                             : "; give another --host or --port");
  return out;
}

/// What rank 0 serves with.
struct Serving {
  process::Socket listener;
  std::string token;
};

Serving open_for_serving(ServeRequest& request, std::optional<Writer>& writer, RunConfig& config,
                         Problems& problems) {
  Serving out;
  if (!request.token_file.empty())
    out.token =
        secret_of_file(request.token_file, text("--token-file: '", request.token_file, "'"));
  out.listener = listen_for(request);
  writer.emplace(open_writer(request.checkpoint, config, problems));
  give_context(request.context, config.model, writer->writing, problems);
  problems.raise();
  const std::vector<std::string>& more = writer->model.notices;
  request.notices.insert(request.notices.end(), more.begin(), more.end());
  return out;
}

/// A prompt begins as one of tessera sample.
Beginning begin_text(const Writer& writer, const std::string& prompt) {
  const std::vector<GivenText> given = {{prompt, "prompt"}};
  const Evaluation& model = writer.model;
  std::vector<Beginning> out =
      beginnings_of(given, writer.writing, model.vocabulary, model.config.model.vocabulary);
  if (model.pretrained) begin_as_folder(model.vocabulary, writer.writing, given, out);
  return std::move(out.front());
}

void serve_model(TextModel& model, RankGroup& group, const ServeRequest& request, Serving& serving,
                 const Writer& writer, Console& console) {
  const std::atomic<bool>& stop = catch_stop_signals();
  AnswerQueue queue(request.queue);
  CompletionsApi api(
      {.name = request.name,
       .created = std::time(nullptr),
       .vocabulary = writer.model.vocabulary,
       .writing = writer.writing,
       .ids = writer.model.config.model.vocabulary,
       .begin = [&](const std::string& prompt) { return begin_text(writer, prompt); },
       .seed = static_cast<std::uint64_t>(request.seed)},
      {.token = serving.token, .host = request.host}, queue);
  const std::string address = to_text(process::local_end(serving.listener));
  const HttpServer server(std::move(serving.listener),
                          [&](HttpExchange& exchange) { api.answer(exchange); });
  console.out << "serving " << request.name << " at http://" << address << "/v1\n" << std::flush;
  write_answers(model, group, writer.model.vocabulary, queue, stop);
}

int serve_on(Communicator* launched, ServeRequest request, Console& console) {
  if (request.help) {
    console.out << "tessera serve PATH [FLAG...]\n\n"
                << "Answers GET /v1/models and /health, POST /v1/completions and "
                << "/v1/chat/completions, one request after the other, until Ctrl-C or SIGTERM.\n\n"
                << flags_help(serve_flags(), console.columns);
    return 0;
  }
  std::optional<Writer> writer;
  Serving serving;
  const WritingWords asked{&request.command, request.checkpoint, "tessera serve"};
  const WritingRun writing =
      find_writing(launched, asked, [&](RunConfig& config, Problems& problems) {
        serving = open_for_serving(request, writer, config, problems);
        return 1;
      });
  for (const std::string& notice : request.notices) console.err << "notice: " << notice << "\n";
  write_on_ranks(writing, asked, "", launched, console, writer,
                 [&](TextModel& model, RankGroup& group) {
                   serve_model(model, group, request, serving, *writer, console);
                 });
  return 0;
}

}  // namespace

int serve_command(const Arguments& arguments, Console& console, const OwnFamilies& families) {
  const ServeRequest request = read_serve_request(arguments, families);
  return on_launched_ranks(request.command, console, [&](Communicator* launched, Console& mine) {
    return serve_on(launched, request, mine);
  });
}

}  // namespace tessera
