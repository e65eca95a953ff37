// The program: parses the command line, runs one subcommand, and turns every failure into a
// sentence. Exit codes: 0 success, 1 a comparison that failed (bench --compare), 2 a user error.

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <vector>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/core/version.h"
#include "host/cpu/blas_kernels.h"
#include "host/cpu/blas_memory.h"
#include "host/io/mapping.h"
#include "tools/command.h"
#include "tools/command_line/help.h"
#include "tools/command_line/parse_error.h"

namespace {

constexpr int kUserError = 2;

// Flags of the program itself, which may stand before or behind a command.
void add_program_flags(CLI::App& app) {
  app.set_help_flag("-h,--help", "show this");
  app.set_version_flag("--version", std::string("cfaa_gpu ") + cfaa::version(), "show the version");
  app.add_flag_callback("--quiet", cfaa::log_quietly,
                        "say nothing but warnings and errors, and show no progress");
  app.add_option_function<std::string>("--log-file", cfaa::log_to_file,
                                       "append what is said, with its time, to this file");
  app.fallthrough();  // inherited by the commands
}

int run(int argc, char** argv) {
  CLI::App app{
      "cfaa_gpu: review-based recommendation across two domains that share no user and no item.",
      "cfaa_gpu"};
  app.formatter(std::make_shared<cfaa::tools::HelpFormatter>());
  add_program_flags(app);
  app.require_subcommand(1);
  app.allow_extras(false);
  cfaa::tools::add_prepare(app);
  cfaa::tools::add_synthesize(app);
  cfaa::tools::add_stats(app);
  cfaa::tools::add_embed(app);
  cfaa::tools::add_tokenize(app);
  cfaa::tools::add_sentences(app);
  cfaa::tools::add_baseline(app);
  cfaa::tools::add_train(app);
  cfaa::tools::add_evaluate(app);
  cfaa::tools::add_compare(app);
  cfaa::tools::add_recommend(app);
  cfaa::tools::add_report(app);
  cfaa::tools::add_serve(app);
  cfaa::tools::add_export(app);
  cfaa::tools::add_config(app);
  cfaa::tools::add_discrepancy(app);
  cfaa::tools::add_bench(app);
  cfaa::tools::add_completion(app);
  app.footer("'cfaa_gpu COMMAND --help' shows the flags of a command.");
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    command->footer("Every command also takes --quiet and --log-file FILE.");
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::RuntimeError& exit_request) {
    return exit_request.get_exit_code();
  } catch (const CLI::ParseError& error) {
    throw cfaa::Error(cfaa::tools::explain(app, error));
  }
  return 0;
}

// OpenBLAS starts threads when it is loaded, which get no work here, and ends the process where
// their stacks do not fit a limited address space. Only the environment can tell it not to, so
// under a limit the program starts again with that: what stands in this section runs before the
// libraries' own initialisation.
void start_blas_without_threads_under_a_limit(int, char** argv, char** environment) {
  if (!cfaa::cpu::address_space_is_limited()) return;
  static char one_thread[] = "OPENBLAS_NUM_THREADS=1";
  std::vector<char*> with_it = {one_thread};
  for (; *environment != nullptr; ++environment) {
    if (std::strncmp(*environment, one_thread, std::strlen(one_thread) - 1) == 0) return;
    with_it.push_back(*environment);
  }
  with_it.push_back(nullptr);
  execve("/proc/self/exe", argv, with_it.data());
}
[[gnu::section(".preinit_array"),
  gnu::used]] void (*const before_libraries)(int, char**,
                                             char**) = start_blas_without_threads_under_a_limit;

}  // namespace

int main(int argc, char** argv) {
  cfaa::cpu::restart_with_better_blas_kernels(argv);
  int code = kUserError;
  cfaa::explain_shortened_files();
  try {
    code = run(argc, argv);
  } catch (const cfaa::Error& error) {
    cfaa::log_error(error.what());
  } catch (const std::bad_alloc&) {
    cfaa::log_error("there is not enough memory for this; use smaller sizes");
  } catch (const std::exception& error) {
    cfaa::log_error(error.what());
  }
  std::cout.flush();
  if (!std::cout || std::fflush(stdout) != 0) {
    cfaa::log_error("the output could not be written to standard output");
    return kUserError;
  }
  return code;
}
