// The real program, driven as a user would.
#include <SQLiteCpp/Database.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/errors/printable.hpp"
#include "harness/inputs/tensor_file.hpp"
#include "harness/inputs/write_safetensors.hpp"
#include "harness/linalg/bfloat16_products.hpp"
#include "harness/random/streams.hpp"
#include "harness/store/store.hpp"
#include "tests/catch.hpp"
#include "tests/folder.hpp"
#include "tests/program.hpp"
#include "tests/store/results_file.hpp"

namespace attnbench::end_to_end_test {
namespace fs = std::filesystem;

namespace {

std::string exported(const std::string& results) { return program("export " + results + " --arrays").text; }

Tensor random_tensor(const std::string& name, std::vector<Index> shape) {
  auto generator = Streams(7).stream("end-to-end", name);
  Index count = 1;
  for (const Index axis : shape) count *= axis;
  const auto values = standard_normal(generator, 1, count);
  return {shape, {values.data(), values.data() + values.size()}};
}

// Plain double loops: out = softmax(q k^T / sqrt d) v for one head.
std::vector<double> reference_softmax(const Tensor& q, const Tensor& k, const Tensor& v, Index head, bool causal) {
  const Index nq = q.shape[1], nk = k.shape[1], d = q.shape[2], dv = v.shape[2];
  std::vector<double> out(static_cast<size_t>(nq * dv));
  const auto at = [head](const Tensor& t, Index i, Index c) {
    return t.values[static_cast<size_t>((head * t.shape[1] + i) * t.shape[2] + c)];
  };
  for (Index i = 0; i < nq; ++i) {
    const Index seen = causal ? i + 1 + nk - nq : nk;  // the last query sees all keys
    std::vector<double> logits;
    for (Index j = 0; j < seen; ++j) {
      double dot = 0;
      for (Index c = 0; c < d; ++c) dot += at(q, i, c) * at(k, j, c);
      logits.push_back(dot / std::sqrt(static_cast<double>(d)));
    }
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (double& logit : logits) sum += logit = std::exp(logit - largest);
    for (Index j = 0; j < seen; ++j)
      for (Index c = 0; c < dv; ++c)
        out[static_cast<size_t>(i * dv + c)] += logits[static_cast<size_t>(j)] / sum * at(v, j, c);
  }
  return out;
}

}  // namespace

TEST_CASE("attend softmax on a file agrees with a float64 reference to 1e-13", "[end-to-end]") {
  const Folder folder;
  const NamedTensors tensors{{"q", random_tensor("q", {2, 50, 16})},
                             {"k", random_tensor("k", {2, 70, 16})},
                             {"v", random_tensor("v", {2, 70, 5})}};
  write_safetensors(folder / "x.safetensors", tensors, Precision::f64);
  for (const bool causal : {false, true}) {
    const auto outcome =
        program(fmt::format("attend softmax --input {} --output {} --precision f64{}", folder / "x.safetensors",
                            folder / "y.safetensors", causal ? " --causal" : ""));
    INFO(outcome.text);
    REQUIRE(outcome.code == 0);
    const Tensor out = read_tensors(folder / "y.safetensors").at("out");
    REQUIRE(out.shape == std::vector<Index>{2, 50, 5});
    for (Index head = 0; head < 2; ++head) {
      const auto expected = reference_softmax(tensors.at("q"), tensors.at("k"), tensors.at("v"), head, causal);
      for (size_t i = 0; i < expected.size(); ++i)
        CHECK(std::abs(out.values[static_cast<size_t>(head) * expected.size() + i] - expected[i]) < 1e-13);
    }
  }
}

TEST_CASE("attend questions a file with more heads than tokens, and decoding is none", "[end-to-end]") {
  const Folder folder;
  const auto said = [&](Index heads, Index nq, Index nk) {
    const NamedTensors tensors{{"q", random_tensor("q", {heads, nq, 4})},
                               {"k", random_tensor("k", {heads, nk, 4})},
                               {"v", random_tensor("v", {heads, nk, 3})}};
    write_safetensors(folder / "x.safetensors", tensors, Precision::f64);
    const auto outcome = program(
        fmt::format("attend softmax --input {} --output {}", folder / "x.safetensors", folder / "y.safetensors"));
    CHECK(outcome.code == 0);
    return outcome.text;
  };
  const std::string questioned = said(9, 2, 8);
  INFO(questioned);
  CHECK(questioned.find("q has shape [9, 2, 4], which is 9 heads of 2 tokens, and k has 9 heads of 8") !=
        std::string::npos);
  CHECK(questioned.find("np.swapaxes(q, -3, -2)") != std::string::npos);
  CHECK(said(8, 1, 9).empty());
  CHECK(said(8, 1, 8).empty());
  CHECK(said(8, 8, 8).empty());
}

TEST_CASE("nothing that a file is called or holds commands a terminal", "[end-to-end]") {
  CHECK(printable("\x1b]0;owned\a\r\x7f\xc2\x9b"
                  "1m\ta\nb\xc3\xa9\xc2\xa0") == "\\x1b]0;owned\\x07\\x0d\\x7f\\x9b1m\ta\nb\xc3\xa9\xc2\xa0");
  const Folder folder;
  const auto missing = program("export '" +
                               (folder / "\x1b[2J\xc2\x9b"
                                         "31m.db") +
                               "'");
  CHECK(missing.code == 2);
  CHECK(missing.text.find("/\\x1b[2J\\x9b31m.db") != std::string::npos);
  CHECK(missing.text.find('\x1b') == std::string::npos);
  {
    Store store(folder / "r.db");
    const auto run = store.begin_run("=HYPERLINK(1)", "{}");
    const CellRow row{
        .key = "k", .experiment = "=1+1", .method = "@SUM", .input = "-x", .shape = {}, .parameters = "{}"};
    store.record(run, row, 0, {Ending::Kind::failed, "\x1b[31mred, or -1"}, 0, {});
    store.record(run, row, 1, {Ending::Kind::failed, "-1"}, 0, {});
  }
  const auto csv = program("export --clock " + (folder / "r.db"));
  INFO(csv.text);
  CHECK(csv.text.find("\n'=1+1,'@SUM,'-x,") != std::string::npos);
  CHECK(csv.text.find(",\"\\x1b[31mred, or -1\",") != std::string::npos);
  CHECK(csv.text.find(",failed,-1,") != std::string::npos);
  CHECK(csv.text.find(",'=HYPERLINK(1)\n") != std::string::npos);
  const auto json = nlohmann::json::parse(program("export " + (folder / "r.db") + " --format json").text);
  CHECK(json.at(0).at("experiment") == "=1+1");
  CHECK(json.at(0).at("reason") == "\x1b[31mred, or -1");
}

TEST_CASE("attend writes what each head drew, takes it back, and refuses tensors that a method does not know",
          "[end-to-end]") {
  const Folder folder;
  write_safetensors(folder / "x.safetensors",
                    {{"q", random_tensor("q", {2, 9, 4})},
                     {"k", random_tensor("k", {2, 9, 4})},
                     {"v", random_tensor("v", {2, 9, 3})}},
                    Precision::f64);
  const auto attend = [&](const std::string& spec, const char* output, const std::string& more) {
    return program(fmt::format("attend {} --input {} --output {} --precision f64 {}", spec, folder / "x.safetensors",
                               folder / output, more));
  };
  const std::string state = folder / "state.safetensors";
  REQUIRE(attend("performer:m=5", "first.safetensors", "--write-state " + state).code == 0);
  CHECK(read_tensors(state).at("projection").shape == std::vector<Index>{2, 5, 4});
  REQUIRE(attend("performer:m=5", "again.safetensors", "--seed 7 --state " + state).code == 0);
  REQUIRE(attend("performer:m=5", "other.safetensors", "--seed 7").code == 0);
  const auto numbers = [&](const char* file) { return read_tensors(folder / file).at("out").values; };
  CHECK(numbers("again.safetensors") == numbers("first.safetensors"));
  CHECK(numbers("other.safetensors") != numbers("first.safetensors"));
  for (const auto& [spec, more, words] :
       {std::tuple<std::string, std::string, const char*>{
            "linformer:r=4", "--state " + state, "there is no tensor 'projection' in its state; there are 'E' (4 x 9)"},
        {"softmax", "--state " + state, "its state is empty"},
        {"softmax", "--write-state " + state, "the state of softmax is empty"},
        {"performer:m=5", "--write-state state.npz", "expected a name that ends in .safetensors"}}) {
    INFO(spec << " " << more);
    const auto refused = attend(spec, "refused.safetensors", more);
    CHECK(refused.code == 2);
    CHECK_THAT(refused.text, ContainsSubstring(words));
  }
  CHECK_THAT(program("describe performer:m=5").text, ContainsSubstring("state tensor projection: 5 x 16"));
}

TEST_CASE("attend writes the attention matrix and the kernel when asked, and they agree with the output",
          "[end-to-end]") {
  const Folder folder;
  const NamedTensors tensors{
      {"q", random_tensor("q", {9, 4})}, {"k", random_tensor("k", {9, 4})}, {"v", random_tensor("v", {9, 3})}};
  write_safetensors(folder / "x.safetensors", tensors, Precision::f64);
  const auto outcome =
      program(fmt::format("attend performer:m=8 --input {} --output {} --precision f64 --matrix --kernel",
                          folder / "x.safetensors", folder / "y.safetensors"));
  INFO(outcome.text);
  REQUIRE(outcome.code == 0);
  const auto written = read_tensors(folder / "y.safetensors");
  const auto A = as_matrix(written.at("attention"), "attention"), K = as_matrix(written.at("kernel"), "kernel");
  const auto out = as_matrix(written.at("out"), "out"), V = as_matrix(tensors.at("v"), "v");
  for (Index i = 0; i < 9; ++i) {
    for (Index j = 0; j < 9; ++j) CHECK(A(i, j) == Approx(K(i, j) / K.row(i).sum()).epsilon(1e-12));
    for (Index c = 0; c < 3; ++c) CHECK(out(i, c) == Approx(A.row(i).dot(V.col(c))).epsilon(1e-12));
  }
}

TEST_CASE("one and two threads give the same rows in every statistics experiment", "[end-to-end]") {
  const Folder folder;
  for (const std::string experiment : {"kernel-error:draws=64,pairs=3", "attention-error", "rank", "sparsity"})
    for (const std::string threads : {"1", "2"}) {
      const auto outcome =
          program("run " + experiment + " --method performer --method performer:features=trig --sweep m=4,8" +
                  " --method softmax -d 8 -n 96 --replicates 2 --threads " + threads + " --results " +
                  (folder / (threads + ".db")));
      INFO(outcome.text);
      REQUIRE(outcome.code == 0);
    }
  CHECK(exported(folder / "1.db") == exported(folder / "2.db"));
}

TEST_CASE("a run that is there is not done again, and more replicates are added to it", "[end-to-end]") {
  const Folder folder;
  const std::string request = "run rank --method performer --sweep m=4,8 -d 8 -n 16 --results " + (folder / "r.db");
  CHECK(program(request + " --replicates 2").text.find("4 run, 0 were there already") != std::string::npos);
  CHECK(program(request + " --replicates 2").text.find("0 run, 4 were there already") != std::string::npos);
  CHECK(program(request + " --replicates 3").text.find("2 run, 4 were there already") != std::string::npos);
}

TEST_CASE("run and plan say how many of the replicates that are there had failed", "[end-to-end]") {
  const Folder folder;
  const std::string request = " rank --method performer --sweep m=4,8 -d 8 -n 16 --replicates 2 --results ";
  const std::string results = folder / "r.db",
                    remark = "of those that were there had failed: --retry runs them again\n";
  CHECK(program("run" + request + results).text.find(remark) == std::string::npos);
  SQLite::Database(results, SQLite::OPEN_READWRITE)
      .exec("UPDATE replicate SET ending = 'crashed', reason = 'signal 11' WHERE replicate = 0");
  CHECK(program("plan" + request + results).text.find("4 done already") != std::string::npos);
  CHECK(program("plan" + request + results).text.find("\n2 " + remark) != std::string::npos);
  CHECK(program("run" + request + results).text.find("\n2 " + remark) != std::string::npos);
  const std::string again = program("run" + request + results + " --retry").text;
  CHECK(again.find("2 run, 2 were there already") != std::string::npos);
  CHECK(again.find(remark) == std::string::npos);
}

TEST_CASE("a precision stops at the same replicates on one and two threads, and after an earlier run", "[end-to-end]") {
  const Folder folder;
  const std::string request = "run rank --method performer --sweep m=4,8 --sweep n=16,32 -d 8 ";
  const std::string until = request + "--until rel-ci=0.032 --replicates 60 --results ";
  REQUIRE(program(request + "--replicates 7 --results " + (folder / "before.db")).code == 0);
  for (const std::string run : {"1", "2", "before"}) {
    const auto outcome = program(until + (folder / (run + ".db")) + " --threads " + (run == "1" ? "1" : "2"));
    INFO(outcome.text);
    REQUIRE(outcome.code == 0);
    CHECK(outcome.text.find("1 cells are UNDECIDED") != std::string::npos);
  }
  CHECK(exported(folder / "1.db") == exported(folder / "2.db"));
  CHECK(exported(folder / "1.db") == exported(folder / "before.db"));
}

TEST_CASE("three shards give the rows of the whole, each row once", "[end-to-end]") {
  const Folder folder;
  const std::string request =
      "run rank --method performer --sweep m=4,8 --sweep n=16,32 -d 8 --replicates 3 --results ";
  REQUIRE(program(request + (folder / "whole.db")).code == 0);
  for (const std::string shard : {"1/3", "2/3", "3/3"}) {
    const auto outcome = program(request + (folder / "shards.db") + " --shard " + shard);
    INFO(outcome.text);
    CHECK(outcome.text.find(" 0 were there already") != std::string::npos);
  }
  CHECK(exported(folder / "shards.db") == exported(folder / "whole.db"));
}

TEST_CASE("cells in another order give the same rows", "[end-to-end]") {
  const Folder folder;
  const std::string common = "run attention-error -d 8 -n 48 --results ";
  const std::string a = "--method performer:m=8 ", b = "--method uniform ", c = "--input gaussian:scale=0.5 ",
                    d = "--input gaussian ";
  REQUIRE(program(common + (folder / "one.db") + " " + a + b + c + d).code == 0);
  REQUIRE(program(common + (folder / "two.db") + " " + b + d).code == 0);
  REQUIRE(program(common + (folder / "two.db") + " " + a + b + d + c).code == 0);
  CHECK(exported(folder / "one.db") == exported(folder / "two.db"));
}

TEST_CASE("misuse ends with exit code 2 and one line that says how to mend it", "[end-to-end]") {
  const Folder folder;
  const std::string results = " --results " + (folder / "r.db");
  const auto misuse = [&](const std::string& arguments, const std::string& expected) {
    const auto outcome = program(arguments);
    INFO(arguments << "\n" << outcome.text);
    CHECK(outcome.code == 2);
    CHECK(outcome.text.find(expected) != std::string::npos);
    CHECK(std::count(outcome.text.begin(), outcome.text.end(), '\n') == 1);
  };
  misuse("rnu", "did you mean run?");
  misuse("run rank --method preformer" + results, "performer");
  misuse("run rnak --method softmax" + results, "did you mean rank?");
  misuse("run rank --method performer:M=4" + results, "did you mean m?");
  misuse("run rank --method performer:m=0" + results, "integer from 1");
  misuse("run rank --method performer:m=4,m=5" + results, "given twice");
  misuse("run rank --method performer:features=possitive" + results, "did you mean positive?");
  misuse("run rank --method softmax --input gausian" + results, "did you mean gaussian?");
  misuse("run rank --method softmax -n 0" + results, "at least 1");
  misuse("run rank --method softmax -n=-5" + results, "at least 1");
  misuse("run rank --method softmax -n 1000000000" + results, "memory");
  misuse("run rank --method softmax --sweep q=1,2" + results, "nothing in this run has that parameter");
  misuse("run rank --method softmax --results /dev/null/x.db", "/dev/null");
  misuse("run rank" + results, "--method");
  misuse("describe nothing-like-this", "nothing is called");
  misuse("export " + (folder / "absent.db"), "absent.db");
  misuse("attend linformer --causal --input x --output y.safetensors", "x");
  CHECK_FALSE(fs::exists(folder / "r.db"));
}

TEST_CASE("bad tensor files are refused by attend and leave no output behind", "[end-to-end]") {
  const Folder folder;
  const auto refused = [&](const std::string& name, const std::string& bytes, const std::string& expected) {
    std::ofstream(folder / name, std::ios::binary) << bytes;
    const auto outcome =
        program(fmt::format("attend softmax --input {} --output {}", folder / name, folder / "y.safetensors"));
    INFO(name << "\n" << outcome.text);
    CHECK(outcome.code == 2);
    CHECK(outcome.text.find(expected) != std::string::npos);
    CHECK_FALSE(fs::exists(folder / "y.safetensors"));
  };
  refused("empty.safetensors", "", "empty.safetensors");
  refused("short.safetensors", std::string("\xff\xff\xff\xff\0\0\0\0{}", 10), "short.safetensors");
  refused("nozip.npz", "PK this is not a zip", "nozip.npz");
  NamedTensors tensors{
      {"q", random_tensor("q", {4, 3})}, {"k", random_tensor("k", {4, 2})}, {"v", random_tensor("v", {4, 3})}};
  write_safetensors(folder / "sizes.safetensors", tensors, Precision::f64);
  const auto sizes = program(
      fmt::format("attend softmax --input {} --output {}", folder / "sizes.safetensors", folder / "y.safetensors"));
  CHECK(sizes.code == 2);
  tensors["k"] = random_tensor("k", {4, 3});
  tensors["k"].values[5] = std::nan("");
  write_safetensors(folder / "nan.safetensors", tensors, Precision::f64);
  const auto nan = program(
      fmt::format("attend softmax --input {} --output {}", folder / "nan.safetensors", folder / "y.safetensors"));
  CHECK(nan.code == 2);
  CHECK_FALSE(fs::exists(folder / "y.safetensors"));
}

TEST_CASE("a method without a causal form refuses attend and is a skipped row in a run", "[end-to-end]") {
  const Folder folder;
  const NamedTensors tensors{
      {"q", random_tensor("q", {8, 3})}, {"k", random_tensor("k", {8, 3})}, {"v", random_tensor("v", {8, 3})}};
  write_safetensors(folder / "x.safetensors", tensors, Precision::f64);
  const auto attend = program(fmt::format("attend linformer:r=4 --causal --input {} --output {}",
                                          folder / "x.safetensors", folder / "y.safetensors"));
  CHECK(attend.code == 2);
  CHECK(attend.text.find("no causal form") != std::string::npos);
  REQUIRE(program("run rank --method linformer:r=4 --causal -n 16 -d 4 --results " + (folder / "r.db")).code == 1);
  CHECK(exported(folder / "r.db").find("skipped") != std::string::npos);
}

TEST_CASE("a time of emulated bfloat16 is a skipped row with the reason, beside the rows of float", "[end-to-end]") {
  const Folder folder;
  const auto timed = [&](const char* precision) {
    return program(fmt::format("run speed:blocks=2,turn=0.1 --method linear -n 16 -d 4 --precision {} --results {}",
                               precision, folder / "r.db"));
  };
  REQUIRE(timed("f32").code == 0);
  const Answer answer = timed("bf16");
  const std::string rows = exported(folder / "r.db");
  CHECK_THAT(rows, ContainsSubstring("f32"));
  CHECK((rows.find("skipped") == std::string::npos) == bfloat16_products_are_fast);
  if (!bfloat16_products_are_fast) CHECK_THAT(answer.text, ContainsSubstring("has no AVX-512 BF16"));
}

TEST_CASE("attend at bf16 writes float, off by the rounding of its products' operands", "[end-to-end]") {
  const Folder folder;
  const NamedTensors tensors{
      {"q", random_tensor("q", {60, 16})}, {"k", random_tensor("k", {60, 16})}, {"v", random_tensor("v", {60, 16})}};
  write_safetensors(folder / "x.safetensors", tensors, Precision::f64);
  const auto attended = [&](const char* precision) {
    const std::string file = folder / "y.safetensors";
    const auto answer = program(
        fmt::format("attend softmax --input {} --output {} --precision {}", folder / "x.safetensors", file, precision));
    INFO(answer.text);
    REQUIRE(answer.code == 0);
    const Tensor out = read_tensors(file).at("out");
    return Eigen::VectorXd(Eigen::Map<const Eigen::VectorXd>(out.values.data(), std::ssize(out.values)));
  };
  const Eigen::VectorXd exact = attended("f64"), coarse = attended("bf16");
  const double error = (coarse - exact).norm() / exact.norm();
  CHECK(error > 1e-3);
  CHECK(error < 1e-2);
  CHECK((attended("f32") - exact).norm() < 1e-3 * error * exact.norm());
  CHECK(coarse == Eigen::VectorXd(coarse.cast<float>().cast<double>()));  // results of products are float, not bfloat16
  CHECK(program("attend softmax --input gaussian --precision bf17 --output " + (folder / "z.safetensors"))
            .text.find("expected f32, f64 or bf16") != std::string::npos);
}

TEST_CASE("list and describe know every entry", "[end-to-end]") {
  const auto all = program("list");
  CHECK(all.code == 0);
  for (const std::string word :
       {"softmax", "performer", "positive", "orthogonal", "gaussian", "kernel-error", "kernel-mse"})
    CHECK(all.text.find("  " + word + " ") != std::string::npos);
  std::istringstream lines(all.text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  ") || line.starts_with("   ")) continue;  // a heading, or a line that goes on
    const auto described = program("describe " + line.substr(2, line.find(' ', 2) - 2));
    INFO(line << "\n" << described.text);
    CHECK(described.code == 0);
  }
}

TEST_CASE("speed validates, times in turns, and pairs with softmax", "[end-to-end]") {
  const Folder folder;
  REQUIRE(
      program("run speed:blocks=3,turn=0.1 --method linear --method performer:m=16 --heads 2 -n 64 -d 8 --results " +
              (folder / "r.db"))
          .code == 0);
  const std::string rows = exported(folder / "r.db");
  for (const std::string metric : {"seconds,s,2", "speedup,1,2", "disturbed,1,2", "rounding_error", "gflops,GFLOP/s",
                                   "roofline_fraction", "fma_peak,FLOP/s", "speedup_by_flops"})
    CHECK(rows.find(metric) != std::string::npos);
}

TEST_CASE("machine measures every rate in both precisions", "[end-to-end]") {
  const Answer machine = program("machine --threads 1 --json", "2>/dev/null");
  REQUIRE(machine.code == 0);
  const auto rates = nlohmann::json::parse(machine.text);
  CHECK(rates["threads"] == 1);
  for (const char* precision : {"f32", "f64"}) {
    CHECK(rates[precision].size() == 8);
    for (const auto& [name, rate] : rates[precision].items()) {
      INFO(precision << " " << name);
      CHECK(rate.get<double>() > 1e6);  // of anything, a machine does more than that in a second
    }
  }
  CHECK(program("machine --threads 0").code == 2);
}

TEST_CASE("report puts a method on one page, and goes on with what it has", "[end-to-end]") {
  const Folder folder;
  const NamedTensors head{
      {"q", random_tensor("q", {64, 4})}, {"k", random_tensor("k", {64, 4})}, {"v", random_tensor("v", {64, 4})}};
  write_safetensors(folder / "head.safetensors", head, Precision::f64);
  const std::string command = fmt::format("report --method linear:features=exp --input file:{} --results {} -o {}",
                                          folder / "head.safetensors", folder / "r.db", folder / "page");
  const Answer first = program(command);
  INFO(first.text);
  REQUIRE(first.code == 0);
  CHECK(fs::exists(folder / "page/index.html"));
  std::ifstream csv(folder / "page/method.linear-features-exp.csv");
  const std::string numbers{std::istreambuf_iterator<char>(csv), {}};
  for (const std::string part : {"linear:features=exp,image", "linear:features=exp,measured", "uniform,measured"})
    CHECK(numbers.find(part) != std::string::npos);
  const Answer again = program(command);
  CHECK(again.code == 0);
  CHECK(again.text.find("0 replicates run") != std::string::npos);

  const Answer unknown = program("report --method perfomer --results " + (folder / "none.db"));
  CHECK(unknown.code == 2);
  CHECK(unknown.text.find("performer") != std::string::npos);
  CHECK_FALSE(fs::exists(folder / "none.db"));
  CHECK(program("report --method linear " + (folder / "r.db")).code == 2);  // a file to draw, or to measure into?
  CHECK(program("report --results " + (folder / "r.db")).code == 2);
  CHECK(program("report --method linear --input needle:nonsense=1 --results " + (folder / "none.db")).code == 2);
}

TEST_CASE("a run is drawn by report without anything else being said", "[end-to-end]") {
  const Folder folder;
  REQUIRE(
      program(
          "run attention-error --method performer --method uniform --sweep m=4,8 -n 32 -d 8 --replicates 2 --results " +
          (folder / "r.db"))
          .code == 0);
  const auto outcome = program("report " + (folder / "r.db") + " -o " + (folder / "page"));
  INFO(outcome.text);
  REQUIRE(outcome.code == 0);
  const std::string numbers = bytes_of(folder / "page/runs.attention-error.csv");
  CHECK(numbers.find("performer,measured,4") != std::string::npos);
  CHECK(numbers.find("uniform,reference") != std::string::npos);
  CHECK(bytes_of(folder / "page/index.html").find("3 cells") != std::string::npos);
}

// Bugs 1 to 4 of a new user's first hour: cells that a logarithmic axis of layers hid, a second run that replaced the
// first one's figure, a word as the axis, and cells of another experiment at the same sizes.
TEST_CASE("a figure of runs has every cell of the experiment, in however many runs and sweeps", "[end-to-end]") {
  const Folder folder;
  const std::string results = folder / "r.db";
  const auto run = [&](const std::string& words) {
    const auto outcome = program("run " + words + " -n 32 --replicates 2 --results " + results);
    INFO(words << "\n" << outcome.text);
    REQUIRE(outcome.code == 0);
  };
  const auto drawn = [&](const std::string& experiment) {
    const auto outcome = program("plot " + results + " --format svg -o " + (folder / "figures"));
    INFO(outcome.text);
    REQUIRE(outcome.code == 0);
    const std::string rows = bytes_of(folder / ("figures/runs." + experiment + ".csv"));
    return std::count(rows.begin(), rows.end(), '\n') - 1;  // without the header
  };
  run("attention-error --methods linear,local,uniform --input model --sweep layer=0,1,2,3 --sweep head=0,1,2");
  CHECK(drawn("attention-error") == 36);
  run("attention-error --methods linear,local,uniform --input ar1 -d 8");
  CHECK(drawn("attention-error") == 39);
  run("kernel-error:draws=64 --method performer --input gaussian:scale=0.1 -d 8 --sweep features=positive,trig --sweep "
      "m=4,8,16");
  CHECK(drawn("kernel-error") == 6);
  run("rank --methods linear,uniform --input ar1 -d 8");
  CHECK(drawn("attention-error") == 39);
}

TEST_CASE("a reproduction compares with the reference, and only --strict lets a difference fail it", "[end-to-end]") {
  const Folder folder;
  const auto reproduced = [&](const std::string& words) {
    return program(fmt::format("reproduce {} --results {} -o {}", words, folder / "r.db", folder / "page"));
  };
  // tests/cli/reproduction_summary_test.cpp has outcomes that differ.
  const auto known = reproduced("wildcat-rank --quick --strict");
  INFO(known.text);
  CHECK(known.code == 0);
  CHECK(known.text.find("compared with the reference: 4 the same\n") != std::string::npos);

  std::ofstream(folder / "own.recipe.toml") << R"(name = "own"
title = "t"
question = "q?"
[[runs]]
experiment = "attention-error:matrix=false"
method = "performer"
input = "gaussian"
n = 16
d = 4
[[statements]]
text = "s"
threshold = "1e9"
because = "b"
expected = "refuted"
metric = "relative_output_error"
take = "exact"
each = "method"
below = 1e9
)";
  const std::string own = folder / "own.recipe.toml", listed = "  own: HOLDS, expected REFUTED: s\n";
  const auto answer = reproduced(own);
  INFO(answer.text);
  CHECK(answer.code == 0);
  CHECK(answer.text.find("NOT AS EXPECTED: the statement was expected to be REFUTED\n") != std::string::npos);
  CHECK(answer.text.find("1 HOLDS\nnot in the reference: 1 verdict, 1 not as expected\n" + listed) !=
        std::string::npos);
  CHECK(reproduced(own + " --strict").code == 1);
  for (const auto& [option, why] :
       {std::pair{"--set m=8", "it was made without --set"}, {"--seeds 2", "it was made with one seed"}}) {
    const auto varied = reproduced(fmt::format("{} {}", own, option));
    INFO(varied.text);
    CHECK(varied.code == 0);
    CHECK(varied.text.find(fmt::format("not compared with the reference: {}\n1 not as expected\n{}", why, listed)) !=
          std::string::npos);
  }
}

}  // namespace attnbench::end_to_end_test
