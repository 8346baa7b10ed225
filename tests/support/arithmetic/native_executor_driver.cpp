// Runs one job of the native executor from standard input: for machines without this Python.
//
// A job: level, steps, bytes of the steps, joins, buffers, the four bounds of the call (int64 each);
// the steps; the joins; for each buffer its row and element bytes, whether it is wide, how many bytes
// it has, from where in them row 0 starts, then the bytes. All bytes of all buffers go to standard
// output, then the findings of each step. It runs in the environment found at first and in foreign ones, which must not matter and
// must stay.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "program.h"

extern "C" int pypto_cast_arithmetic_run(int, const Step*, int64_t, const Join*, const Buffer*,
                                         int64_t, int64_t, int64_t, int64_t, int64_t, uint8_t*,
                                         uint8_t*, char*);

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

static bool read(void* to, size_t bytes) { return std::fread(to, 1, bytes, stdin) == bytes; }

int main() {
    int64_t head[9];
    if (!read(head, sizeof head) || head[2] != head[1] * static_cast<int64_t>(sizeof(Step))) return 2;
    std::vector<Step> steps(head[1]);
    std::vector<Join> joins(head[3]);
    if (!read(steps.data(), head[2]) || !read(joins.data(), head[3] * sizeof(Join))) return 3;
    std::vector<Buffer> buffers(head[4]);
    std::vector<std::vector<char>> memory(head[4]);
    for (int64_t k = 0; k < head[4]; ++k) {
        int64_t of[5];
        if (!read(of, sizeof of)) return 4;
        memory[k].resize(of[3]);
        if (!read(memory[k].data(), of[3])) return 5;
        char* data = of[3] ? memory[k].data() + of[4] : nullptr;
        buffers[k] = {data, of[0], static_cast<int32_t>(of[1]), static_cast<int32_t>(of[2])};
    }
    std::vector<uint8_t> findings(head[1]);
    const auto run = [&] {
        return pypto_cast_arithmetic_run(static_cast<int>(head[0]), steps.data(), head[1],
                                         joins.data(), buffers.data(), head[4], head[5], head[6],
                                         head[7], head[8], findings.data(), nullptr, nullptr);
    };
    if (run() != 0) return 6;
    const auto expected = memory;
    const uint64_t before = control();
    for (uint64_t foreign = 0; foreign < 8; ++foreign) {  // directions and flush to zero
        set_control(before | foreign << 22);
        const uint64_t changed = control();
        const int status = run();
        const uint64_t after = control();
        set_control(before);
        if (status != 0 || after != changed) return 7;
        for (int64_t k = 0; k < head[4]; ++k)
            if (memory[k] != expected[k]) return 8;
    }
    for (const auto& bytes : memory) std::fwrite(bytes.data(), 1, bytes.size(), stdout);
    std::fwrite(findings.data(), 1, findings.size(), stdout);
    return 0;
}
