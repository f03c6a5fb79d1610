#!/usr/bin/env python3
"""Power limits as settings, and budgets over jobs: what is set, stored and written, and the choice beside HiGHS.

Usage: budget_test.py RUBATO
"""
import csv
import io
import json
import random
import sqlite3
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]
from checks import check, exit_status, finished, not_checked, run  # noqa: E402

RUBATO = sys.argv[1]
LIMITS = ["--gpu", "a100-sxm4-80gb", "--power-limits", "200:400:50"]


def explored(*arguments):
    return json.loads(finished(RUBATO, "explore", *arguments, "--json").stdout)


def check_limits(folder):
    """Alone and crossed; stored; in the plan file; what sets them."""
    db, file = folder / "limits.db", folder / "plan.json"
    done = finished(RUBATO, "explore", "gpt3-xl", *LIMITS, "--slack", "10", "--odds", "0", "--db", db, "--plan-file", file)
    with sqlite3.connect(db) as store:
        clocks = dict(store.execute("SELECT power_limit_w, time_s FROM clocks"))
        chosen, power_w = store.execute("SELECT c.power_limit_w, p.applied_energy_j / p.applied_time_s FROM plans p "
                                        "JOIN clocks c USING (run_id, clock_id) WHERE is_answer").fetchone()
    check("the limits are stored; the GPU's own is no setting", set(clocks) == {None, 200, 250, 300, 350}, clocks)
    check("a lower limit is not faster", clocks[200] >= clocks[250] >= clocks[300] >= clocks[350] >= clocks[None])
    check("the plan keeps its limit", power_w <= chosen * (1 + 1e-9))
    check("the screen says what sets it", f"sudo nvidia-smi -pl {chosen:g}; back: sudo nvidia-smi -pl 400" in " ".join(done.stdout.split()), done.stdout)
    plan = json.loads(file.read_text())
    check("the plan file sets the limit alone", plan["clocks"] == [{"label": f"auto/auto, {chosen:g} W", "core_mhz": None, "mem_mhz": 1593, "power_limit_w": chosen}]
          or (plan["clocks"][0]["core_mhz"], plan["clocks"][0]["power_limit_w"]) == (None, chosen), plan["clocks"])
    alone = explored("gpt3-xl", *LIMITS, "--slack", "10", "--odds", "0")["plans"][1]
    clocked = ["--clocks", "mem=1593 core=900:1410:90,auto"]
    crossed = explored("gpt3-xl", *LIMITS, *clocked, "--slack", "10", "--odds", "0")["plans"][1]
    of_clocks = explored("gpt3-xl", *LIMITS[:2], *clocked, "--per", "run", "--slack", "10", "--odds", "0")["plans"][1]
    check("crossed with clocks none saves less", crossed["energy_j"] <= min(alone["energy_j"], of_clocks["energy_j"]) * (1 + 1e-9))
    refused = run(RUBATO, "explore", "gpt3-xl", *LIMITS, "--per", "kernel")
    check("no limit within a step", refused.returncode == 2 and "--power-limits are of whole steps" in refused.stderr, refused.stderr)
    refused = run(RUBATO, "explore", "gpt3-xl", "--gpu", "a100-sxm4-80gb", "--power-limits", "50")
    check("a limit the card does not take", refused.returncode == 2 and "a power limit of 50 W is outside" in refused.stderr, refused.stderr)
    low = run(RUBATO, "explore", "gpt3-xl", "--gpu", "a40", "--power-limits", "100", "--goal", "time", "--budget", "155W")
    check("a limit below the floor is said", "limit not reached" in low.stdout, low.stdout)


def check_zeus(folder):
    """What GlobalPowerLimitOptimizer of Zeus 0.16 saves."""
    measured = [{"power_limit": limit, "energy": energy, "time": time}
                for limit, energy, time in [(400, 3900.0, 10.0), (350, 3500.0, 10.3), (300, 3180.0, 10.8), (250, 2950.0, 12.1)]]
    (folder / "zeus.json").write_text(json.dumps({"measurements": measured}, indent=4))
    plan = explored("--table", folder / "zeus.json", "--gpu", "a100-sxm4-80gb", "--slack", "9", "--odds", "0", "--per", "run")["plans"][1]
    check("the least energy within 9 % is at 300 W", plan["clocks"] == "1593/auto, 300 W", plan)
    check("its change is the measured one", abs(plan["energy_change_pct"] - 100 * (3180 / 3900 - 1)) < 1e-9)
    (folder / "two.json").write_text(json.dumps({"measurements": [{**one, "energy": 2 * one["energy"]} for one in measured]}))
    said = finished(RUBATO, "explore", "--table", folder / "two.json", "--gpu", "a100-sxm4-80gb", "--slack", "9", "--odds", "0", "--per", "run")
    check("energies of two GPUs are known as such", "those of 2 GPUs" in said.stderr, said.stderr)


def caps(rng, rows=12):
    """A table of caps: [(cap, time, energy)]; power is what the cap leaves."""
    bend, most = rng.uniform(0.2, 0.8), rng.uniform(250, 390)
    out = []
    for i in range(rows):
        cap = 400 - 20 * i
        power = min(most, cap * 0.99)
        time = (most / power) ** bend * rng.uniform(0.998, 1.002)
        out.append((cap, time, power * time))
    return out


def write_jobs(folder, count, rng):
    text, jobs = 'worth = "tokens"\n', []
    for j in range(count):
        table = caps(rng)
        (folder / f"job{j}.csv").write_text("kernel,core_mhz_requested,power_cap_w,time_s,energy_j\n" + "".join(f"step,auto,{cap},{time},{energy}\n" for cap, time, energy in table))
        gpus, worth = rng.randint(1, 16), rng.uniform(100, 5000)
        text += f'[[job]]\nname = "job{j}"\ntable = "job{j}.csv"\ngpu = "a100-sxm4-80gb"\ngpus = {gpus}\nworth = {worth}\n'
        jobs.append([(worth / time, gpus * energy / time) for _, time, energy in table])
    (folder / "jobs.toml").write_text(text)
    return jobs


def most_worth(choices, limit):
    """The most worth of one (worth, weight) of each choice within the limit, by HiGHS; None where scipy is missing."""
    try:
        import numpy as np
        from scipy.optimize import Bounds, LinearConstraint, milp
    except ImportError:
        not_checked.append("scipy")
        return None
    sizes = [len(choice) for choice in choices]
    one_each = np.repeat(np.eye(len(sizes)), sizes, axis=1)
    worth, weight = np.array([option for choice in choices for option in choice]).T
    best = milp(-worth, integrality=np.ones(sum(sizes)), bounds=Bounds(0, 1),
                constraints=[LinearConstraint(one_each, 1, 1), LinearConstraint(weight / limit, -np.inf, 1)],
                options={"mip_rel_gap": 1e-9, "time_limit": 60})
    check("HiGHS ends", best.status == 0, best.message)
    return -best.fun


def check_budget(folder):
    """The choice is within the watts, and worth what HiGHS finds."""
    rng = random.Random(5)
    jobs = write_jobs(folder, 40, rng)
    today_w = sum(job[0][1] for job in jobs)
    watts = 0.8 * today_w
    found = json.loads(finished(RUBATO, "budget", folder / "jobs.toml", "--watts", watts, "--odds", "50", "--json", "--list", "options").stdout)
    period = found["periods"][0]
    worth = sum(row["worth_per_s"] for row in found["jobs"])
    check("proven", period["proven"] and period["gap_pct"] == 0)
    check("within the watts", period["power_w"] <= watts and abs(period["power_w"] - sum(row["power_w"] for row in found["jobs"])) < 1e-6 * watts)
    check("odds of a half or more", period["odds_pct"] >= 50)
    check("every setting is listed, with its interval", len(found["options"]) == 40 * 12 and
          all(row["power_low_w"] < row["power_w"] < row["power_high_w"] for row in found["options"]))
    check("and what sets it", {row["command"] for row in found["options"]} >= {"sudo nvidia-smi -pl 300"})
    careful = json.loads(finished(RUBATO, "budget", folder / "jobs.toml", "--watts", watts, "--json").stdout)["periods"][0]
    check("90 % odds cost watts", careful["odds_pct"] >= 90 and careful["worth"] <= period["worth"])
    rows = list(csv.DictReader(io.StringIO(finished(RUBATO, "budget", folder / "jobs.toml", "--list", "options", "--csv").stdout)))
    check("a table for other planners", len(rows) == 480 and float(rows[0]["power_w"]) > 0)
    best = most_worth(jobs, watts)
    check("worth what HiGHS finds", best is None or abs(worth - best) <= 1e-7 * worth, (worth, best))


def check_day(folder):
    """Dear hours draw less; deadlines hold; what cannot be kept is said."""
    (folder / "day.csv").write_text("hours,price_per_kwh,watts\n8,0.1,\n8,90000,\n8,0.1,65000\n")
    periods = json.loads(finished(RUBATO, "budget", folder / "jobs.toml", "--series", folder / "day.csv", "--odds", "50", "--json").stdout)["periods"]
    check("a dear hour draws less", periods[1]["power_w"] < periods[0]["power_w"])
    check("a limit of the hour holds", periods[2]["power_w"] <= 65000 and periods[0]["most_w"] is None)
    check("hours add up", [row["begin_h"] for row in periods] == [0, 8, 16])
    text = (folder / "jobs.toml").read_text().replace('name = "job0"', 'name = "job0"\nsteps = 3600\nhours = 1.05')
    (folder / "late.toml").write_text(text)
    least = json.loads(finished(RUBATO, "budget", folder / "late.toml", "--least-watts", "--json").stdout)
    slow = json.loads(finished(RUBATO, "budget", folder / "jobs.toml", "--least-watts", "--json").stdout)
    check("the deadline is kept", least["jobs"][0]["worth_per_s"] >= slow["jobs"][0]["worth_per_s"])
    check("others draw least", least["jobs"][1:] == slow["jobs"][1:])
    none = run(RUBATO, "budget", folder / "jobs.toml", "--watts", "1000")
    check("too few watts: status 1 and the least", none.returncode == 1 and "the least is" in none.stderr, none.stderr)
    for text, words in (('[[job]]\nname = "a"\n', "either a db or a table"), ("x = 1\n", "job"), ('[[job]]\nname = "a"\ndb = "no.db"\n', "no.db"),
                        ('[[job]]\nname = "a"\ntable = "job0.csv"\ngpu = "a100-sxm4-80gb"\nhours = 3\n', "steps and hours")):
        (folder / "wrong.toml").write_text(text)
        wrong = run(RUBATO, "budget", folder / "wrong.toml", "--watts", "1000")
        check(f"refused: {words}", wrong.returncode in (3, 4) and words in wrong.stderr, wrong.stderr)


def check_stored_run(folder):
    """Jobs of a database: clocks, limits and plans of a run."""
    (folder / "stored.toml").write_text('[[job]]\nname = "gpt"\ndb = "limits.db"\ngpus = 8\nworth = 40960\n')
    done = finished(RUBATO, "budget", folder / "stored.toml", "--watts", "2400")
    check("without a measured level there are no odds", "odds of staying within the limit are not known" in " ".join(done.stdout.split()), done.stdout)
    (folder / "stored.toml").write_text('[[job]]\nname = "gpt"\ndb = "limits.db"\ngpus = 8\nworth = 40960\nwatts = 3000\nwatts_error_pct = 3\n')
    found = json.loads(finished(RUBATO, "budget", folder / "stored.toml", "--watts", "2400", "--json", "--list", "options").stdout)
    check("the level is the measured one", found["options"][0]["power_w"] == 3000)
    check("the odds are kept", found["periods"][0]["odds_pct"] >= 90 and found["jobs"][0]["power_w"] < 2400)


def check_total(folder):
    """A limit over the day: kept, spent where it is worth most, and never worth less when it is higher."""
    (folder / "kg.csv").write_text("hours,price_per_kwh,kg_per_kwh\n8,0.1,0.3\n10,0.3,0.6\n6,0.1,0.1\n")
    day = ["budget", folder / "jobs.toml", "--series", folder / "kg.csv", "--odds", "50", "--json"]

    def planned(*more):
        return json.loads(finished(RUBATO, *day, *more).stdout)["periods"]

    def kg(periods):
        return sum(row["kg_co2e"] for row in periods)
    free = planned()
    for unit, spent in (("kWh", lambda rows: sum(row["kwh"] for row in rows)), ("kg", kg), ("", lambda rows: sum(row["cost"] for row in rows))):
        limit = 0.8 * spent(free)
        found = planned("--total", f"{limit:.6f}{unit}")
        check(f"a total in {unit or 'money'} is kept, nearly whole", 0.995 * limit <= spent(found) <= limit + 1e-6, spent(found))
        check("and proven", all(row["proven"] for row in found))
        less = planned("--total", f"{0.95 * limit:.6f}{unit}")
        check("a lower one is worth less", sum(row["worth"] for row in less) < sum(row["worth"] for row in found))
    found = planned("--total", f"{0.8 * kg(free):.6f}kg")
    check("carbon is saved where it is most", found[1]["power_w"] < found[2]["power_w"], found)
    # No choice of one share of today's watts for all hours is worth more at that carbon.
    alike = planned("--watts", max(row["power_w"] for row in free) * 0.8)
    same = planned("--total", f"{kg(alike):.6f}kg")
    check("worth no less than the same watts all day", sum(row["worth"] for row in same) >= sum(row["worth"] for row in alike) * (1 - 1e-9))
    none = run(RUBATO, *day, "--total", "1kg")
    check("too little: status 1 and the least", none.returncode == 1 and "the least is" in none.stderr, none.stderr)
    both = run(RUBATO, *day, "--total", "1kg", "--watts", "5")
    check("two kinds of limits are refused", both.returncode == 2 and "--watts" in both.stderr, both.stderr)


def check_totals_beside_highs(folder):
    """All periods of a day as one choice: worth what HiGHS finds on random jobs and days."""
    rng = random.Random(11)
    for count, periods in ((3, 5), (12, 3), (30, 2)):
        home = folder / f"day{count}"
        home.mkdir()
        jobs = write_jobs(home, count, rng)
        day = [(rng.uniform(1, 8), rng.uniform(0.05, 0.8)) for _ in range(periods)]
        (home / "day.csv").write_text("hours,kg_per_kwh\n" + "".join(f"{hours},{kg}\n" for hours, kg in day))
        choices = [[(3600 * hours * worth, kg * hours * watts / 1000) for worth, watts in job] for hours, kg in day for job in jobs]
        least, most = (sum(of(kg for _, kg in choice) for choice in choices) for of in (min, max))
        limit = least + rng.uniform(0.2, 0.8) * (most - least)
        rows = json.loads(finished(RUBATO, "budget", home / "jobs.toml", "--series", home / "day.csv", "--total", f"{limit!r}kg", "--odds", "50", "--json").stdout)["periods"]
        found = sum(row["worth"] for row in rows)
        best = most_worth(choices, limit)
        check("the total holds, proven", all(row["proven"] for row in rows) and sum(row["kg_co2e"] for row in rows) <= limit * (1 + 1e-9))
        check("a day is worth what HiGHS finds", best is None or abs(found - best) <= 1e-6 * best, (found, best))


def write_server(path, names):
    """A capture of a server of one GPU: a step of prefill, four of decode, sampling behind each mark."""
    events, host_us, gpu_us, launch = [], 1000.0, 1100.0, 0
    for name in (names[0], *[names[1]] * 4):
        decodes, begin_us = name == names[1], host_us
        for kernel in range(9):
            launch += 1
            length_us = 5 if kernel == 8 else 30 if decodes else 200
            sampled = kernel == 8
            if sampled:
                events.append(dict(ph="X", cat="user_annotation", name=name, pid=9, tid=9, ts=begin_us, dur=host_us - begin_us))
            events.append(dict(ph="X", cat="cuda_runtime", name="cudaLaunchKernel", pid=9, tid=9, ts=host_us + 1, dur=4, args=dict(correlation=launch)))
            gpu_us = max(gpu_us, host_us + 10)
            events.append(dict(ph="X", cat="kernel", name="sample" if sampled else "gemm_bf16" if kernel % 2 else "flash_fwd_kernel", pid=0, tid=7, ts=gpu_us,
                               dur=length_us, args=dict(device=0, stream=7, correlation=launch, grid=[108, 1, 1], block=[128, 1, 1])))
            gpu_us += length_us + 1
            host_us += 8
        host_us = gpu_us + 20
    path.write_text(json.dumps(dict(deviceProperties=[dict(id=0, name="NVIDIA H100 80GB HBM3")], traceEvents=events)))


def check_times(folder):
    """--budget as a time per step means the same for traces, captures and stages; --phase says which steps."""
    server = folder / "serving.json"
    for names in (("execute_context_1(512)_generation_0(0)", "execute_context_0(0)_generation_4(4)"), ("step[EXTEND bs=1 toks=512]", "step[DECODE bs=4]")):
        write_server(server, names)
        for phase, steps, step_s in (("decode", 4, 273e-6), ("prefill", 1, 1.61e-3)):
            of_phase = [server, "--phase", phase, "--per", "run", "--odds", "0"]
            slack = explored(*of_phase, "--slack", "10")["plans"]
            default_s = slack[0]["time_s"] / steps
            check(f"a step of {phase} is as long as captured", abs(default_s / step_s - 1) < 0.1, default_s)
            replayed = json.loads(finished(RUBATO, "replay", server, "--phase", phase, "--json").stdout)["runs"][0]
            check(f"replay takes steps of {phase}", abs(1e-3 * replayed["time_ms"] / steps / step_s - 1) < 0.1, replayed)
            fitted = json.loads(finished(RUBATO, "calibrate", "--captures", f"{server}@1980", "--phase", phase, "-o", folder / "of_phase.json", "--json").stdout)
            check(f"calibrate fits a step of {phase}", abs(1e-3 * fitted["captures"][0]["step_ms"] / step_s - 1) < 0.2, fitted["captures"])
            within = explored(*of_phase, "--budget", f"{1.1e3 * default_s}ms")["plans"]
            check(f"time per step of {phase}", within[1]["clocks"] == slack[1]["clocks"] and within[1]["time_s"] <= steps * 1.1 * default_s * (1 + 1e-9), within)
    finished(RUBATO, "trace", "import", server, "--phase", "prefill", "--capture", folder / "prefill.json.gz")
    told = finished(RUBATO, "trace", "import", folder / "prefill.json.gz", "--phase", "prefill", "--json")
    check("a saved capture has its steps", [row["name"] for row in json.loads(told.stdout)["groups"] if row["group"] == "step"] == [names[0]])
    write_server(server, ("forward", "forward "))
    silent = run(RUBATO, "explore", server, "--phase", "decode")
    check("what tells no phases: status 3", silent.returncode == 3 and "does not tell prefill from decode" in silent.stderr, silent.stderr)
    other = run(RUBATO, "explore", "gpt3-xl", "--phase", "decode")
    check("a trace has no phases", other.returncode == 2 and "--phase does nothing for a trace" in other.stderr, other.stderr)
    stages = ["gpt3-xl", "--stages", "2", "--microbatches", "4", "--gpu", "a100-sxm4-80gb", "--odds", "0"]
    slack = explored(*stages, "--slack", "5")["plans"]
    within = explored(*stages, "--budget", f"{1.05 * slack[0]['time_s']!r}s")["plans"]
    check("time of a pipeline's step", [row["energy_j"] for row in within] == [row["energy_j"] for row in slack], (within, slack))
    both = run(RUBATO, "explore", *stages, "--budget", "1s", "--slack", "5")
    check("a time and a slack are refused", both.returncode == 2 and "--slack does nothing beside a time" in both.stderr, both.stderr)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        check_limits(folder)
        check_zeus(folder)
        check_budget(folder)
        check_day(folder)
        check_total(folder)
        check_totals_beside_highs(folder)
        check_times(folder)
        check_stored_run(folder)
    return exit_status()


if __name__ == "__main__":
    sys.exit(main())
