"""The C++ text that wraps a verilated core into a bench: drivers, monitors and the clock.

The bench itself (words, gaps, …) is handed over at run time, so one compiled library serves every
bench of a core. Names in the text: `Vtop` is Verilator's class; `BENCH_FST` and `BENCH_VCD` ask
for a wave.
"""

from collections.abc import Mapping, Sequence

from rtl.benches.bench import RESET_CYCLES, StreamPort

__all__ = ["wrapper_text"]


def wrapper_text(
    ports: Sequence[StreamPort],
    probes: Sequence[tuple[str, int]],
    members: Mapping[str, str],
    idle: Sequence[str] = (),
) -> str:
    """The wrapper of a core with these streams and probes.

    `members` maps a Verilog port's name to its member of `Vtop`; of `clk` and `rst` either may be
    missing, as in a core without registers.  idle: inputs that are left at 0.
    """
    make, drive, sample = [], [], []
    declare = []
    make += [f"        top.{members[name]} = 0;" for name in idle]
    for number, port in enumerate(ports):
        kind = "Input" if port.direction == "i" else "Output"
        wires = [members[f"{port.name}__{part}"] for part in ("payload", "valid", "ready")]
        top_mask = (1 << ((port.bits - 1) % 8 + 1)) - 1
        declare.append(f"    {kind}<{port.word_bytes}, {top_mask}> p{number};")
        payload = f"reinterpret_cast<uint8_t*>(&top.{wires[0]})"
        make.append(f"        p{number}.attach({payload}, &top.{wires[1]}, &top.{wires[2]});")
        make.append(f"        ports[{number}] = &p{number};")
        drive.append(f"        p{number}.drive(cycle);")
        sample.append(f"        broken |= p{number}.sample(cycle, pending);")
    fields = {
        "PORTS": str(len(ports)),
        "RESET_CYCLES": str(RESET_CYCLES),
        "DECLARE": "\n".join(declare),
        "MAKE": "\n".join(make),
        "DRIVE": "\n".join(drive),
        "SAMPLE": "\n".join(sample),
        "CLOCK": f"top.{members['clk']} = level;" if "clk" in members else "(void)level;",
        "RESET": f"top.{members['rst']} = level;" if "rst" in members else "(void)level;",
        "PROBES": "\n".join(
            f"        out[{number}] = static_cast<uint64_t>(top.{members[name]});"
            for number, (name, _) in enumerate(probes)
        ),
    }
    text = _TEXT
    for field, value in fields.items():
        text = text.replace(f"@{field}@", value)
    return text


_TEXT = r"""
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>
#include "Vtop.h"
#include "verilated.h"
#include "verilated_syms.h"
#if defined(BENCH_FST)
#include "verilated_fst_c.h"
using Wave = VerilatedFstC;
#elif defined(BENCH_VCD)
#include "verilated_vcd_c.h"
using Wave = VerilatedVcdC;
#endif

// Verilator's way to give up is to end the process (VL_USER_FATAL); ours ends the run.
void vl_fatal(const char*, int, const char*, const char* message) {
    throw std::runtime_error(message);
}

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are packed little-endian");

namespace {

// What is common to both directions: the stimulus, and when each word crossed.
struct Port {
    const uint8_t* words = nullptr;
    const int64_t* gaps = nullptr;
    const int64_t* earliest = nullptr;
    int64_t n = 0, k = 0, start = 0;
    bool violated = false;
    std::vector<int64_t> cycles;
    std::vector<uint8_t> seen;  // outputs only

    virtual void idle() = 0;
    // As if it had just been attached.
    void clear() {
        n = k = start = 0;
        violated = false;
        cycles.clear();
        seen.clear();
        idle();
    }
    void arm(int64_t previous) {
        if (k < n) start = std::max(earliest[k], previous + 1 + gaps[k]);
    }
    // One word crossed: count it if it is a listed one, and schedule the next.
    void crossed(int64_t cycle, int64_t& pending) {
        cycles.push_back(cycle);
        if (k < n) {
            ++k;
            --pending;
        }
        arm(cycle);
    }
};

template <int BYTES, unsigned TOP_MASK> struct Input : Port {
    uint8_t* payload;
    uint8_t* valid;
    uint8_t* ready;
    bool on = false, stale = true;

    void attach(uint8_t* payload_, uint8_t* valid_, uint8_t* ready_) {
        payload = payload_;
        valid = valid_;
        ready = ready_;
        idle();
    }
    // While valid is 0: the complement of the next word, all ones after the last.
    void idle() override {
        on = false;
        stale = true;
        *valid = 0;
        const uint8_t* next = words + k * BYTES;
        for (int i = 0; i < BYTES; ++i) payload[i] = k < n ? ~next[i] : 0xff;
        payload[BYTES - 1] &= TOP_MASK;
    }
    void drive(int64_t cycle) {
        const bool now = k < n && cycle >= start;
        if (now == on && !stale) return;
        if (!now) {
            idle();
            stale = false;
            return;
        }
        on = true;
        stale = false;
        std::memcpy(payload, words + k * BYTES, BYTES);
        *valid = 1;
    }
    bool sample(int64_t cycle, int64_t& pending) {
        if (on && *ready) {
            crossed(cycle, pending);
            stale = true;
        }
        return false;
    }
};

template <int BYTES, unsigned TOP_MASK> struct Output : Port {
    const uint8_t* payload;
    uint8_t* valid;
    uint8_t* ready;
    bool waiting = false;
    uint8_t held[BYTES];

    void attach(uint8_t* payload_, uint8_t* valid_, uint8_t* ready_) {
        payload = payload_;
        valid = valid_;
        ready = ready_;
        idle();
    }
    void idle() override {
        waiting = false;
        *ready = 0;
    }
    void drive(int64_t cycle) { *ready = k >= n || cycle >= start; }
    bool sample(int64_t cycle, int64_t& pending) {
        if (waiting && !(*valid && std::memcmp(payload, held, BYTES) == 0)) violated = true;
        if (!*valid) return violated;
        waiting = !*ready;
        if (waiting) {
            std::memcpy(held, payload, BYTES);
        } else {
            seen.insert(seen.end(), payload, payload + BYTES);
            crossed(cycle, pending);
        }
        return violated;
    }
};

// `*` stands for any text.
bool matches(const char* pattern, const char* text) {
    if (*pattern == '*') return matches(pattern + 1, text) || (*text && matches(pattern, text + 1));
    return *pattern == *text && (*text == 0 || matches(pattern + 1, text + 1));
}

// A wire: 1 if all its bits are.
struct Wire {
    const uint8_t* at = nullptr;
    uint64_t mask = 0;
    size_t bytes = 0;

    explicit Wire(VerilatedVar* var) {
        if (var == nullptr || var->entBits() > 64) return;
        at = static_cast<const uint8_t*>(var->datap());
        mask = ~uint64_t{0} >> (64 - var->entBits());
        bytes = var->totalSize();
    }
    unsigned value() const {
        if (at == nullptr) return 0;
        uint64_t bits = 0;
        std::memcpy(&bits, at, bytes);
        return bits == mask;
    }
};
struct Watch {
    int number;
    std::vector<Wire> wires;
};

struct Bench {
    VerilatedContext context;
    Vtop top{&context, "top"};
    Port* ports[@PORTS@ + 1];
@DECLARE@
    int64_t cycle = 0, end = 0, max_cycles = 0, tail_cycles = 0, pending = 0, finish = -1;
    bool broken = false;
    std::string failure;
    std::vector<Watch> watches;
    std::vector<uint8_t> seen;
#if defined(BENCH_FST) || defined(BENCH_VCD)
    std::unique_ptr<Wave> wave;
#endif

    void attach() {
@MAKE@
    }
    void clock(uint8_t level) { @CLOCK@ }
    void reset(uint8_t level) { @RESET@ }
    void settle() {
        top.eval();
#if defined(BENCH_FST) || defined(BENCH_VCD)
        if (wave) wave->dump(context.time());
        context.timeInc(1);
#endif
    }
    void open(const char* path) {
#if defined(BENCH_FST) || defined(BENCH_VCD)
        if (path == nullptr) return;
        context.traceEverOn(true);
        wave = std::make_unique<Wave>();
        top.trace(wave.get(), 99);
        wave->open(path);
#else
        (void)path;
#endif
    }
    void plan() {
        if (pending == 0 && finish < 0) {
            finish = cycle + tail_cycles;
            end = std::min(finish, max_cycles);
        }
    }
    // Look for the wires, names with a space between, in every instance below the top module.
    void watch(const char* path, const char* names) {
        const int number = static_cast<int>(seen.size());
        seen.push_back(0);
        const std::string whole = std::string{"top.top."} + path;  // model, module
        for (const auto& scope : *context.scopeNameMap()) {
            if (!matches(whole.c_str(), scope.first)) continue;
            Watch found{number, {}};
            bool there = true;
            std::istringstream list{names};
            for (std::string name; list >> name;) {
                VerilatedVar* const var = scope.second->varFind(name.c_str());
                there = there && var != nullptr;
                found.wires.emplace_back(var);
            }
            if (there) watches.push_back(found);
        }
    }
    void look() {
        for (const Watch& one : watches) {
            unsigned values = 0;
            for (size_t n = 0; n < one.wires.size(); ++n) values |= one.wires[n].value() << n;
            seen[one.number] |= 1u << values;
        }
    }
    // Back to cycle 0 with other stimuli to come; the core stays as it is.
    void restart(int64_t max_cycles_, int64_t tail_cycles_) {
        for (int i = 0; i < @PORTS@; ++i) ports[i]->clear();
        cycle = end = pending = 0;
        finish = -1;
        max_cycles = max_cycles_;
        tail_cycles = tail_cycles_;
    }
    void begin() {
        for (int i = 0; i < @PORTS@; ++i) ports[i]->idle();
        for (int i = 0; i < @PORTS@; ++i) {
            pending += ports[i]->n;
            ports[i]->arm(-1);
        }
        end = max_cycles;
        plan();
        reset(1);
        for (int i = 0; i < @RESET_CYCLES@; ++i) {
            clock(0);
            settle();
            clock(1);
            settle();
        }
        reset(0);
    }
    void drive() {
@DRIVE@
    }
    void sample() {
@SAMPLE@
    }
    void run(int64_t cycles) {
        const int64_t first = cycle;
        while (cycle < end && cycle - first < cycles && !broken) {
            drive();
            clock(0);
            settle();
            look();
            sample();
            if (broken) break;
            clock(1);
            settle();
            ++cycle;
            plan();
        }
    }
};

// Call `body`; should the simulator give up, keep its message and end the run.
template <typename Body> void guarded(Bench* bench, Body body) {
    try {
        body();
    } catch (const std::exception& error) {
        bench->failure = error.what();
        bench->broken = true;
    }
}

}  // namespace

extern "C" {

Bench* bench_new(int64_t max_cycles, int64_t tail_cycles, const char* wave) {
    Bench* bench = new Bench;
    bench->max_cycles = max_cycles;
    bench->tail_cycles = tail_cycles;
    bench->attach();
    guarded(bench, [&] { bench->open(wave); });
    return bench;
}

void bench_delete(Bench* bench) {
#if defined(BENCH_FST) || defined(BENCH_VCD)
    if (bench->wave) bench->wave->close();
#endif
    guarded(bench, [&] { bench->top.final(); });
    delete bench;
}

void bench_port(Bench* bench, int port, int64_t n, const uint8_t* words, const int64_t* gaps,
                const int64_t* earliest) {
    Port& p = *bench->ports[port];
    p.n = n;
    p.words = words;
    p.gaps = gaps;
    p.earliest = earliest;
    p.cycles.reserve(n);
}

void bench_begin(Bench* bench) {
    guarded(bench, [&] { bench->begin(); });
}
int64_t bench_run(Bench* bench, int64_t cycles) {
    const int64_t first = bench->cycle;
    guarded(bench, [&] { bench->run(cycles); });
    return bench->cycle - first;
}
const char* bench_failure(Bench* bench) { return bench->failure.c_str(); }
int64_t bench_cycle(Bench* bench) { return bench->cycle; }
int bench_running(Bench* bench) { return bench->cycle < bench->end && !bench->broken; }
int bench_timed_out(Bench* bench) {
    return bench->finish < 0 || bench->cycle < bench->finish;
}
int bench_violated(Bench* bench, int port) { return bench->ports[port]->violated; }

void bench_watch(Bench* bench, const char* path, const char* names) {
    guarded(bench, [&] { bench->watch(path, names); });
}
void bench_seen(Bench* bench, uint8_t* out) {
    std::copy(bench->seen.begin(), bench->seen.end(), out);
}
void bench_restart(Bench* bench, int64_t max_cycles, int64_t tail_cycles) {
    bench->restart(max_cycles, tail_cycles);
}

int64_t bench_crossed(Bench* bench, int port, const int64_t** cycles, const uint8_t** words) {
    const Port& p = *bench->ports[port];
    *cycles = p.cycles.data();
    *words = p.seen.data();
    return static_cast<int64_t>(p.cycles.size());
}

void bench_probes(Bench* bench, uint64_t* out) {
    Vtop& top = bench->top;
    (void)top;
    (void)out;
@PROBES@
}

}  // extern "C"
"""
