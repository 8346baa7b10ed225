// Runs jobs of the native engine from standard input: for machines without this Python.
//
// A job: level, number of steps, elements, bytes of the source and of the result (int64 each), the
// steps, the source's codes. The result's codes go to standard output. Each job runs in the
// environment found at first and in foreign ones, which must not matter and must stay.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

struct Step;
extern "C" int pypto_cast_native_run(int, const Step*, int64_t, const void*, void*, int64_t);

static uint64_t control() {
    uint64_t word = 0;
#ifdef __aarch64__
    asm volatile("mrs %0, fpcr" : "=r"(word));
#endif
    return word;
}

static void set_control(uint64_t word) {
#ifdef __aarch64__
    asm volatile("msr fpcr, %0" : : "r"(word));
#endif
    (void)word;
}

int main() {
    int64_t head[5];
    while (std::fread(head, sizeof head, 1, stdin) == 1) {
        const int64_t count = head[1], elems = head[2];
        std::vector<uint32_t> steps(4 * count);
        std::vector<char> in(head[3] + 16), out(head[4]), again(head[4]);
        if (std::fread(steps.data(), 4, steps.size(), stdin) != steps.size()) return 2;
        if (std::fread(in.data(), 1, head[3], stdin) != static_cast<size_t>(head[3])) return 3;
        const auto run = [&](const char* from, char* to) {
            return pypto_cast_native_run(static_cast<int>(head[0]),
                                         reinterpret_cast<const Step*>(steps.data()), count, from,
                                         to, elems);
        };
        if (run(in.data(), out.data()) != 0) return 4;
        const uint64_t before = control();
        for (uint64_t foreign = 0; foreign < 8; ++foreign) {  // directions and flush to zero
            set_control(before | foreign << 22);
            const uint64_t changed = control();
            std::memmove(in.data() + foreign, in.data() + (foreign > 0 ? foreign - 1 : 0), head[3]);
            const int status = run(in.data() + foreign, again.data());
            const uint64_t after = control();
            set_control(before);
            if (status != 0 || after != changed) return 5;
            if (std::memcmp(out.data(), again.data(), out.size()) != 0) return 6;
        }
        std::fwrite(out.data(), 1, out.size(), stdout);
    }
    return 0;
}
