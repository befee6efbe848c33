#include "harness/timing/peer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/process.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/inputs/tensor_file.hpp"
#include "harness/inputs/write_safetensors.hpp"
#include "harness/machine/scratch_folder.hpp"
#include "harness/plugins/plugins.hpp"

namespace attnbench {

namespace {
namespace process = boost::process;

void append(Tensor& tensor, const Matrix<double>& of_head) {
  if (tensor.shape.empty()) tensor.shape = {0, of_head.rows(), of_head.cols()};
  if (tensor.shape[1] != of_head.rows() || tensor.shape[2] != of_head.cols())
    throw Skip("the heads' drawn tensors differ in size, which the peer does not support");
  ++tensor.shape[0];
  tensor.values.insert(tensor.values.end(), of_head.data(), of_head.data() + of_head.size());
}

bool in_python(const std::string& program) { return program.ends_with(".py"); }
}  // namespace

struct Peer::Process {
  explicit Process(const std::string& program) : name(program) {
    Peer::check(program);
    std::vector<std::string> words{std::filesystem::absolute(program).string()};
    if (in_python(program)) words.insert(words.begin(), plugins().python);
    child = process::child(words, process::std_in<requests, process::std_out> answers);
  }
  ~Process() {
    std::error_code ignored;
    try {
      requests.close();
      requests.pipe().close();  // the peer ends when its input ends
    } catch (...) {
      child.terminate(ignored);
    }
    child.wait(ignored);
  }

  nlohmann::json ask(const nlohmann::json& request) {
    requests << request.dump() << "\n" << std::flush;
    std::string line;
    if (!std::getline(answers, line)) throw std::runtime_error(name + " ended before it answered");
    return nlohmann::json::parse(line);
  }

  std::string name;
  process::opstream requests;
  process::ipstream answers;
  process::child child;
  ScratchFolder folder;
  int prepared = 0;
};

// One prepared method. A turn is one request, which the other side times.
class Peer::Call final : public TimedCall {
 public:
  Call(std::shared_ptr<Process> process, int id, std::string library)
      : process_(std::move(process)), id_(id), library_(std::move(library)) {}
  void call() override { seconds_elsewhere(1); }
  std::optional<double> seconds_elsewhere(Index calls) override {
    return process_->ask({{"run", id_}, {"iterations", calls}}).at("seconds").get<double>();
  }
  void record(Recorder& record) const override { record.note("the peer is " + library_); }

 private:
  std::shared_ptr<Process> process_;
  int id_;
  std::string library_;  // with its version
};

void Peer::check(const std::string& program) {
  if (!std::filesystem::is_regular_file(program) || access(program.c_str(), in_python(program) ? R_OK : X_OK) != 0)
    throw Misuse("peer=" + program +
                 " is not an executable program; expected a path such as scripts/bench/peers/pytorch.py");
}

Peer::Peer(const std::string& program) : process_(std::make_shared<Process>(program)) {}
Peer::~Peer() = default;

template <class T>
std::unique_ptr<TimedCall> Peer::prepare(const Params& method, const std::vector<HeadData<T>>& heads,
                                         const std::vector<Tensors>& states, bool causal, int threads,
                                         const std::vector<Matrix<T>>& outputs, double tolerance) {
  NamedTensors tensors;
  for (size_t h = 0; h < heads.size(); ++h) {
    append(tensors["q"], heads[h].Q.template cast<double>());
    append(tensors["k"], heads[h].K.template cast<double>());
    append(tensors["v"], heads[h].V.template cast<double>());
    for (const auto& [name, tensor] : states[h]) append(tensors[name], tensor);
  }
  const auto file = process_->folder.path / fmt::format("{}.safetensors", process_->prepared++);
  write_safetensors(file.string(), tensors, Precision::f64);  // a rounded draw may choose another key
  const auto answer =
      process_->ask({{"prepare", method.spec()}, {"tensors", file.string()}, {"causal", causal}, {"threads", threads}});
  std::filesystem::remove(file);
  if (answer.contains("none")) throw Skip(answer.at("none").get<std::string>());
  const std::string output_path = answer.at("output");
  const auto theirs = read_tensors(output_path).at("out");
  std::filesystem::remove(output_path);
  double difference = 0, norm = 0;
  size_t place = 0;
  for (const Matrix<T>& ours : outputs)
    for (Index i = 0; i < ours.size(); ++i, ++place) {
      const double own = static_cast<double>(ours.data()[i]);
      difference += std::pow(own - theirs.values.at(place), 2);
      norm += own * own;
    }
  if (!(difference <= tolerance * tolerance * norm))
    throw Skip(fmt::format("the peer's output differs from ours by {:.1e} of its norm: it computes something else",
                           std::sqrt(difference / norm)));
  return std::make_unique<Call>(process_, answer.at("id").get<int>(), answer.at("library").get<std::string>());
}

template std::unique_ptr<TimedCall> Peer::prepare<float>(const Params&, const std::vector<HeadData<float>>&,
                                                         const std::vector<Tensors>&, bool, int,
                                                         const std::vector<Matrix<float>>&, double);
template std::unique_ptr<TimedCall> Peer::prepare<double>(const Params&, const std::vector<HeadData<double>>&,
                                                          const std::vector<Tensors>&, bool, int,
                                                          const std::vector<Matrix<double>>&, double);

}  // namespace attnbench
