#include "cli/bisect/commands.h"
#include "cli/frame/options.h"
#include "replayer/sides/call_server.h"

namespace acltape::cli {
namespace {

class ServeCallsCommand final : public Command {
 public:
  std::string Name() const override { return "serve-calls"; }
  std::string Summary() const override {
    return "One side of a bisection between two sides; started by `bisect`";
  }
  std::string Examples() const override { return "  acltape serve-calls @socket 3"_cli; }
  bool Hidden() const override { return true; }

  void Declare(CLI::App& app) override {
    AddOption(app, "socket", socket_, "The connected stream socket to answer on")->required();
  }

  int Run() override { return replayer::sides::ServeCalls(socket_); }

 private:
  int socket_ = -1;
};

}  // namespace

std::unique_ptr<Command> MakeServeCallsCommand() { return std::make_unique<ServeCallsCommand>(); }

}  // namespace acltape::cli
