/// Runs a fuzz target where there is no libFuzzer: replays a corpus, then damages it at random, the
/// same way each time. It takes libFuzzer's words, so that both are called alike:
///
///   fuzz_graph_text [-runs=N] [-seed=N] [-max_len=BYTES] FOLDER-OR-FILE...
///
/// At a finding it writes the input to crash-input in the working folder, and dies.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>

#include "fuzz/mutate.h"
#include "fuzz/target.h"
#include "tessera/base/text.h"

extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace tessera::fuzz {

namespace {

constexpr unsigned kSecondsPerInput = 60;  // an input that takes longer hangs

// The input that runs, for the handler of signals.
const std::uint8_t* input_data = nullptr;
std::size_t input_size = 0;

struct Options {
  std::int64_t runs = 0;
  std::uint64_t seed = 1;
  std::size_t max_bytes = 4096;
  std::vector<std::string> paths;
};

/// Calls nothing but what a signal handler may.
void save_input() {
  constexpr char kWords[] = "the input was written to crash-input\n";
  const int file = ::open("crash-input", O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file < 0) return;
  if (::write(file, input_data, input_size) == static_cast<ssize_t>(input_size))
    (void)!::write(STDERR_FILENO, kWords, sizeof kWords - 1);
  ::close(file);
}

void on_signal(int signal) {
  save_input();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void catch_signals() {
  static char stack[1 << 16];  // of the handler, as an overflow of the other is a finding
  stack_t alternate = {};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  ::sigaltstack(&alternate, nullptr);
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM})
    ::sigaction(signal, &action, nullptr);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(save_input);
}

/// In memory of its exact size, so that a sanitizer sees a step beyond it.
void run(const std::string& input) {
  const auto bytes = std::make_unique<std::uint8_t[]>(input.size());
  std::copy(input.begin(), input.end(), bytes.get());
  input_data = bytes.get();
  input_size = input.size();
  ::alarm(kSecondsPerInput);
  LLVMFuzzerTestOneInput(input_data, input_size);
}

Options read_options(const std::vector<std::string>& words) {
  Options out;
  for (const std::string& word : words) {
    const auto value = [&] { return std::stoull(word.substr(word.find('=') + 1)); };
    if (starts_with(word, "-runs=")) {
      out.runs = static_cast<std::int64_t>(value());
    } else if (starts_with(word, "-seed=")) {
      out.seed = value();
    } else if (starts_with(word, "-max_len=")) {
      out.max_bytes = value();
    } else if (starts_with(word, "-")) {
      fail(Fault::Usage, "unknown ", word, "; known are -runs=, -seed= and -max_len=");
    } else {
      out.paths.push_back(word);
    }
  }
  return out;
}

std::vector<std::string> read_corpus(const std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  for (const std::string& path : paths) {
    if (fs::is_directory(path)) {
      for (const fs::directory_entry& entry : fs::directory_iterator(path))
        files.push_back(entry.path());
    } else {
      files.emplace_back(path);
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> out;
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    require(in.good(), "cannot read ", file.string());
    out.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return out;
}

int drive(const Options& options) {
  using Clock = std::chrono::steady_clock;
  const std::vector<std::string> corpus = read_corpus(options.paths);
  require(!corpus.empty(), "no corpus; name a folder of inputs");
  catch_signals();
  for (const std::string& input : corpus) run(input);
  require(tally().accepted > 0, "all ", corpus.size(), " inputs of the corpus are refused");
  std::cout << corpus.size() << " inputs of the corpus: " << tally().accepted << " accepted, "
            << tally().refused << " refused" << std::endl;

  Mutator mutator(corpus, options.seed, options.max_bytes);
  const auto start = Clock::now();
  for (std::int64_t i = 0; i < options.runs; ++i) {
    std::string input = mutator.next();
    const std::int64_t before = tally().accepted;
    run(input);
    if (tally().accepted > before) mutator.learn(std::move(input));
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::cout << text(grouped(options.runs), " damaged inputs: ", grouped(tally().accepted),
                    " accepted, ", grouped(tally().refused),
                    " refused, those of the corpus included; ",
                    static_cast<std::int64_t>(static_cast<double>(options.runs) / seconds),
                    " inputs/s; at most ", bytes_text(tally().peak_heap_bytes), " of heap")
            << std::endl;
  return 0;
}

}  // namespace

}  // namespace tessera::fuzz

int main(int count, char** words) try {
  using namespace tessera::fuzz;
  return drive(read_options({words + 1, words + count}));
} catch (const std::exception& error) {
  std::cerr << error.what() << std::endl;
  return 2;
}
