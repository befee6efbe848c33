// Stops with a sentence on a processor that lacks instructions which this library was compiled for: a wheel of another
// level, or a build that was copied from a newer machine. Without it the first of these instructions would kill the
// process, maybe while methods register.
#if defined(__x86_64__)
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace {

// Before every other constructor of the library, and with instructions alone that each x86-64 processor has.
[[gnu::constructor(101), gnu::target("arch=x86-64")]] void require_processor() {
  __builtin_cpu_init();
  const char* missing = nullptr;
#if defined(__AVX2__)
  if (!__builtin_cpu_supports("avx2")) missing = "AVX2";
#endif
#if defined(__FMA__)
  if (!__builtin_cpu_supports("fma")) missing = "FMA";
#endif
#if defined(__BMI2__)
  if (!__builtin_cpu_supports("bmi2")) missing = "BMI2";
#endif
#if defined(__AVX512F__)
  if (!__builtin_cpu_supports("avx512f")) missing = "AVX-512F";
#endif
#if defined(__AVX512VL__)
  if (!__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq")) missing = "AVX-512VL and DQ";
#endif
#if defined(__AVX512BF16__)
  if (!__builtin_cpu_supports("avx512bf16")) missing = "AVX-512 BF16";
#endif
  if (!missing) return;
  const char* text[] = {"attnbench: it was built for processors with ", missing,
                        ", which this one lacks; build it here (scripts/build.sh release, or pip install from the "
                        "source tree)\n"};
  for (const char* part : text)
    if (write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  _exit(2);
}

}  // namespace
#endif
