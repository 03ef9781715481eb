#include "tessera/rapidformer/user_script.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/files/process.h"
#include "tessera/files/staged_folder.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

constexpr int kCompileSeconds = 600;

bool exists_at(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string cache_folder(const EnvironmentVariables& environment) {
  const std::string folder = user_cache_folder(environment);
  if (folder.empty())
    fail(Fault::Resource, "compiled user scripts are kept in a folder, but neither XDG_CACHE_HOME ",
         "nor HOME is set; set one");
  return (fs::path(folder) / "scripts").string();
}

[[noreturn]] void fail_without_compiler(const std::vector<std::string>& names) {
  fail(Fault::Resource, "a user script is compiled at its first run, but there is no C++ ",
       "compiler ", join(names), "; install one, like Debian's package g++, or set CXX");
}

/// The begin of a command that calls it.
std::vector<std::string> words_of_compiler(const std::string& compiler) {
  if (exists_at(compiler)) return {compiler};
  std::vector<std::string> out;
  for (std::string& word : split(compiler, ' ')) {
    if (!word.empty()) out.push_back(std::move(word));
  }
  return out;
}

/// It does not get the secret by which the script's ranks know each other.
ProcessResult run_compiler(const std::vector<std::string>& command) {
  ProcessOptions options;
  options.timeout_seconds = kCompileSeconds;
  options.environment = {"TESSERA_SECRET="};
  return run_process(command, options);
}

ProcessResult version_of(const std::string& compiler) {
  std::vector<std::string> command = words_of_compiler(compiler);
  command.emplace_back("--version");
  return run_compiler(command);
}

std::string found_compiler(const EnvironmentVariables& environment) {
  const std::string named = value_of(environment, "CXX");
  const std::vector<std::string> names =
      named.empty() ? std::vector<std::string>{"c++", "g++", "clang++"} : std::vector{named};
  for (const std::string& name : names) {
    if (version_of(name).ok()) return name;
  }
  fail_without_compiler(names);
}

/// In the file that CMake keeps of a build folder.
std::string source_of_build(const fs::path& build) {
  constexpr std::string_view kEntry = "CMAKE_HOME_DIRECTORY:INTERNAL=";
  std::ifstream file(build / "CMakeCache.txt");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(kEntry)) return line.substr(kEntry.size());
  return "";
}

constexpr const char* kHeader = "tessera/rapidformer/rapidformer.h";
constexpr const char* kLibrary = "libtessera.so";

/// Headers and library of an installation whose programs are in `bin`, or of a build folder.
void find_library(const fs::path& bin, ScriptTools& tools) {
  const fs::path prefix = bin.parent_path();
  if (exists_at(prefix / "include" / kHeader)) {
    tools.include = (prefix / "include").string();
    std::error_code ignored;
    for (const fs::path lib : {"lib", "lib64"}) {
      if (exists_at(prefix / lib / kLibrary)) tools.library = (prefix / lib / kLibrary).string();
      // Debian's folders of one kind of machine: lib/x86_64-linux-gnu.
      for (const fs::directory_entry& below : fs::directory_iterator(prefix / lib, ignored)) {
        if (tools.library.empty() && exists_at(below.path() / kLibrary))
          tools.library = (below.path() / kLibrary).string();
      }
    }
  } else if (const std::string source = source_of_build(bin); !source.empty()) {
    tools.include = (fs::path(source) / "src").string();
    if (exists_at(bin / kLibrary)) tools.library = (bin / kLibrary).string();
  }
  if (tools.include.empty())
    fail(Fault::Resource, "a user script needs Tessera's headers, but there are none in '",
         (prefix / "include").string(), "', beside the folder of this program; install Tessera ",
         "(cmake --install build --prefix FOLDER) and run FOLDER/bin/rapidformer");
  if (tools.library.empty())
    fail(Fault::Resource, "a user script is linked with ", kLibrary, ", which is neither in '",
         prefix.string(), "/lib' nor in '", bin.string(),
         "'; install Tessera, or build the target tessera_shared");
}

/// What a script is compiled with, but for the names of files.
std::vector<std::string> compile_command(const ScriptTools& tools) {
  const std::string folder = fs::path(tools.library).parent_path().string();
  std::vector<std::string> out = words_of_compiler(tools.compiler);
  for (const std::string& word :
       {std::string("-std=c++20"), std::string("-O2"), std::string("-isystem"), tools.include,
        std::string("-x"), std::string("c++"), std::string("-pthread"), "-Wl,-rpath," + folder,
        std::string("-Wl,--enable-new-dtags")})
    out.push_back(word);
  return out;
}

/// All that the same source may be compiled differently with.
std::string key_of(const std::string& path, const std::string& source, const ScriptTools& tools) {
  std::error_code ignored;
  StreamHash hash;
  const auto add = [&](std::string_view part) {
    hash.update(part);
    hash.update(std::string_view("\0", 1));
  };
  add(kVersion);
  add(path);
  add(source);
  add(version_of(tools.compiler).output);
  add(join(compile_command(tools), " "));
  add(tools.library);
  add(text(static_cast<std::int64_t>(fs::file_size(tools.library, ignored))));
  add(text(static_cast<std::int64_t>(
      fs::last_write_time(tools.library, ignored).time_since_epoch().count())));
  return hash.text();
}

/// The key together with the bytes of the script's own headers.
std::string key_with_headers(const std::string& key, const std::vector<std::string>& headers) {
  StreamHash hash;
  hash.update(key);
  for (const std::string& header : headers) {
    hash.update(header);
    hash.update(exists_at(header) ? read_file(header) : std::string("gone"));
  }
  return hash.text();
}

std::vector<std::string> listed_headers(const std::string& path) {
  std::vector<std::string> out;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) out.push_back(line);
  return out;
}

/// The names behind the first one in what -MMD writes: "script.o: script.cpp mine.h \".
std::vector<std::string> own_headers(const std::string& rule, const std::string& script) {
  std::vector<std::string> out;
  std::string name;
  const auto end = [&] {
    if (!name.empty() && name.back() != ':' && name != script)
      out.push_back(fs::absolute(name).string());
    name.clear();
  };
  for (std::size_t i = 0; i < rule.size(); ++i) {
    const char next = i + 1 < rule.size() ? rule[i + 1] : '\n';
    const bool escaped =
        (rule[i] == '\\' && next != '\n') || (rule[i] == '$' && next == '$');  // as make reads it
    if (escaped)
      name.push_back(rule[++i]);
    else if (rule[i] == ' ' || rule[i] == '\n' || rule[i] == '\\')
      end();
    else
      name.push_back(rule[i]);
  }
  end();
  return out;
}

/// Whether one of the files was written since, or is gone: what was compiled may be another text.
bool written_since(const std::vector<std::string>& files, fs::file_time_type begin) {
  return std::ranges::any_of(files, [&](const std::string& file) {
    std::error_code failure;
    const fs::file_time_type written = fs::last_write_time(file, failure);
    return failure || written >= begin;
  });
}

/// Files of one compilation, gone with it. A compiler that outlives this process keeps them from
/// the next one.
class Scratch {
 public:
  explicit Scratch(const fs::path& in) try : folder_((in / "compile").string()) {
    folder_.hold_in_children();
  } catch (const Error& error) {
    throw error.with(text("in '", in.string(), "', where compiled user scripts are kept; set ",
                          "XDG_CACHE_HOME to another place"));
  }
  std::string path(const char* name) const { return (fs::path(folder_.path()) / name).string(); }

 private:
  StagedFolder folder_;
};

[[noreturn]] void fail_to_compile(const std::string& path, const ScriptTools& tools,
                                  const ProcessResult& result) {
  if (result.exit_code == 127) fail_without_compiler({tools.compiler});
  if (result.timed_out)
    fail(Fault::Usage, "compiling the user script '", path, "' took more than ", kCompileSeconds,
         " s and was ended");
  if (result.errors.find("undefined reference to `main'") != std::string::npos ||
      result.errors.find("undefined symbol: main") != std::string::npos)
    fail(Fault::Usage, "the user script '", path, "' has no main(); end it with\n",
         "  int main(int argc, char** argv) {\n    RapidformerEngine engine(argc, argv);\n",
         "    MyPretrainer trainer(engine);\n    return trainer.train();\n  }");
  fail(Fault::Usage, "the user script '", path, "' does not compile; the output of ",
       tools.compiler, " is below\n", result.errors);
}

/// Makes `rule` and `program`; returns warnings.
std::string compile(const std::string& path, const std::string& script, const ScriptTools& tools,
                    const Scratch& scratch) {
  std::vector<std::string> command = compile_command(tools);
  for (const std::string& word :
       {script, std::string("-MMD"), std::string("-MF"), scratch.path("rule"), std::string("-o"),
        scratch.path("program"), std::string("-x"), std::string("none"), tools.library})
    command.push_back(word);
  const ProcessResult result = run_compiler(command);
  if (!result.ok()) fail_to_compile(path, tools, result);
  return result.errors;
}

}  // namespace

ScriptTools script_tools(const EnvironmentVariables& environment) {
  ScriptTools out;
  find_library(fs::read_symlink("/proc/self/exe").parent_path(), out);
  out.compiler = found_compiler(environment);
  out.cache = cache_folder(environment);
  return out;
}

std::string compiled_script(const std::string& path, const ScriptTools& tools, Console& console) {
  const std::string script = fs::absolute(path).lexically_normal().string();
  const std::string source = read_file(path, Fault::Usage), key = key_of(script, source, tools);
  const fs::path cache = tools.cache;
  const std::string list = (cache / (key + ".headers")).string();
  const auto program_of = [&](const std::vector<std::string>& headers) {
    return (cache / key_with_headers(key, headers)).string();
  };
  if (exists_at(list)) {
    std::string known = program_of(listed_headers(list));
    if (exists_at(known)) return known;
  }
  std::error_code failure;
  fs::create_directories(cache, failure);
  const Scratch scratch(cache);
  console.err << "compiling " << path << " ..." << std::endl;
  const fs::file_time_type begin = fs::file_time_type::clock::now();
  console.err << compile(path, script, tools, scratch);
  const std::vector<std::string> headers = own_headers(read_file(scratch.path("rule")), script);
  std::vector<std::string> read = headers;
  read.push_back(script);
  const bool kept = !written_since(read, begin) && read_file(script) == source;
  std::string program = kept ? program_of(headers) : (cache / (key + ".once")).string();
  fs::rename(scratch.path("program"), program, failure);
  if (failure)
    fail(Fault::Resource, "cannot keep the compiled user script as '", program,
         "': ", failure.message(), "; set XDG_CACHE_HOME to another place");
  if (kept) write_atomically(list, headers.empty() ? "" : join(headers, "\n") + "\n");
  return program;
}

namespace {

/// Goes on as `program`, whose arguments are `words`; returns where that is not possible.
void become(const std::string& program, std::vector<std::string> words, Console& console) {
  console.out.flush();
  console.err.flush();
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(program.c_str(), pointers.data());
}

/// PYTHONPATH with the package `tessera` beside this program, as a build folder has it, which is
/// found where no other is; empty: there is none.
std::string path_with_own_package(const EnvironmentVariables& environment) {
  const fs::path own = fs::read_symlink("/proc/self/exe").parent_path() / "python";
  if (!exists_at(own / "tessera" / "__init__.py")) return "";
  const std::string others = value_of(environment, "PYTHONPATH");
  return others.empty() ? own.string() : others + ":" + own.string();
}

[[noreturn]] void run_python_script(const std::string& path, const Arguments& arguments,
                                    Console& console, const EnvironmentVariables& environment) {
  read_file(path, Fault::Usage);  // that it is there
  const std::string named = value_of(environment, "PYTHON");
  const std::string python = named.empty() ? "python3" : named;
  std::vector<std::string> words = {"env"};
  if (const std::string modules = path_with_own_package(environment); !modules.empty())
    words.push_back("PYTHONPATH=" + modules);
  words.insert(words.end(), {python, path});
  words.insert(words.end(), arguments.begin(), arguments.end());
  become("env", std::move(words), console);
  fail(Fault::Resource, "cannot run '", path, "': ", std::generic_category().message(errno),
       "; install coreutils");
}

}  // namespace

int run_user_script(const std::string& path, const Arguments& arguments, Console& console,
                    const EnvironmentVariables& environment) {
  if (path.ends_with(".py")) run_python_script(path, arguments, console, environment);
  const std::string program = compiled_script(path, script_tools(environment), console);
  std::vector<std::string> words = {path};
  words.insert(words.end(), arguments.begin(), arguments.end());
  become(program, std::move(words), console);
  fail(Fault::Resource, "cannot start the compiled user script '", program,
       "': ", std::generic_category().message(errno),
       "; if that folder is mounted noexec, set XDG_CACHE_HOME to another place");
}

}  // namespace tessera
