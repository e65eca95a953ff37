// The program: parses the command line, runs one subcommand, and turns every failure into a
// sentence. Exit codes: 0 success, 1 a comparison that failed (bench --compare), 2 a user error.

#include <cstdio>
#include <exception>
#include <iostream>
#include <new>

#include "host/core/error.h"
#include "host/core/version.h"
#include "host/cpu/blas_kernels.h"
#include "host/io/mapping.h"
#include "tools/command.h"

namespace {

constexpr int kUserError = 2;

// Every long flag of the commands that were named on the command line.
void collect_flags(const CLI::App& app, std::vector<std::string>& flags) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  for (const CLI::App* command : app.get_subcommands()) collect_flags(*command, flags);
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  return names;
}

// One sentence for a command line that cannot be understood.
std::string explain(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  std::string message = error.what();
  while (!message.empty() && (message.back() == '\n' || message.back() == '.')) message.pop_back();
  if (app.get_subcommands().empty() && argc > 1) {
    const std::string near = cfaa::nearest_name(argv[1], command_names(app));
    return "'" + std::string(argv[1]) + "' is not a command" +
           (near.empty() ? "; 'cfaa_gpu --help' lists them" : "; did you mean '" + near + "'?");
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    std::vector<std::string> flags;
    collect_flags(app, flags);
    for (const std::string& extra : app.remaining(true)) {
      if (!extra.starts_with("-")) return "'" + extra + "' is one argument too many";
      const std::string near = cfaa::nearest_name(extra.substr(0, extra.find('=')), flags);
      return extra + " is not a flag of this command" +
             (near.empty() ? "; --help lists them" : "; did you mean " + near + "?");
    }
  }
  return message + "; --help shows how the command is used";
}

int run(int argc, char** argv) {
  CLI::App app{
      "cfaa_gpu: review-based recommendation across two domains that share no user and no item."};
  app.set_version_flag("--version", std::string("cfaa_gpu ") + cfaa::version());
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
  cfaa::tools::add_export(app);
  cfaa::tools::add_config(app);
  cfaa::tools::add_discrepancy(app);
  cfaa::tools::add_bench(app);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::RuntimeError& exit_request) {
    return exit_request.get_exit_code();
  } catch (const CLI::ParseError& error) {
    throw cfaa::Error(explain(app, error, argc, argv));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  cfaa::cpu::restart_with_better_blas_kernels(argv);
  int code = kUserError;
  cfaa::explain_shortened_files();
  try {
    code = run(argc, argv);
  } catch (const cfaa::Error& error) {
    std::cerr << "cfaa_gpu: " << error.what() << '\n';
  } catch (const std::bad_alloc&) {
    std::cerr << "cfaa_gpu: there is not enough memory for this; use smaller sizes\n";
  } catch (const std::exception& error) {
    std::cerr << "cfaa_gpu: " << error.what() << '\n';
  }
  std::cout.flush();
  if (!std::cout || std::fflush(stdout) != 0) {
    std::cerr << "cfaa_gpu: the output could not be written to standard output\n";
    return kUserError;
  }
  return code;
}
