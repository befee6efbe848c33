// A shared library of something else.
extern "C" int answer() { return 42; }
