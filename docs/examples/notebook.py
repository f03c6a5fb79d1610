# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---
# %% [markdown]
# # From a capture to a plan
# A profiled training step goes in; the clocks that save energy, and the file that sets them, come out. Open it in Jupyter with
# jupytext, or run it: `python3 notebook.py [FOLDER]`. It needs matplotlib and the package rubato.

# %%
import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import rubato

HERE = Path(__file__).resolve().parent if "__file__" in globals() else Path.cwd()
OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(".")
CAPTURE = HERE / "run.pt.trace.json.gz"
db = OUT / "notebook.db"

# %% [markdown]
# ## What was captured
# `explore` says how much of the GPU's time is measured, anchored at the captured time, or guessed.

# %%
answer = rubato.explore(CAPTURE, captured_clock="1593/1410", per=["run", "pass"], list="kernels", db=db)
run = answer.run[0]
print(f"{run['gpu']}: captured {1e3 * run['captured_s']:.1f} ms, reproduced {1e3 * run['reproduced_s']:.1f} ms, {run['anchored_pct']:.0f} % anchored, "
      f"{run['guessed_split_pct']:.0f} % with a guessed split")

# %% [markdown]
# ## What the plans promise
# Energy and time against the default clocks; bars span the interval over what the capture leaves open. A table shows itself with its
# units; `answer.plans.to_pandas()`, `to_polars()` and `to_arrow()` take it elsewhere.

# %%
answer.plot().figure.savefig(OUT / "plans.svg")
answer.plans[["granularity", "slack_pct", "energy_change_pct", "time_change_pct"]]

# %% [markdown]
# ## Where the time goes
# The ten kernels that take longest under the plan per iteration without slack.

# %%
times_s = {}
for kernel in answer.kernels.where(granularity="run", slack_pct=0):
    times_s[kernel["kernel"]] = times_s.get(kernel["kernel"], 0.0) + kernel["time_s"]
top = sorted(times_s.items(), key=lambda item: -item[1])[:10]
figure, axes = plt.subplots(figsize=(6, 4))
axes.barh([name[:40] for name, _ in reversed(top)], [1e3 * time_s for _, time_s in reversed(top)])
axes.set_xlabel("time, ms")
figure.tight_layout()
figure.savefig(OUT / "kernels.svg")

# %% [markdown]
# ## The plan as a file
# What `rubato.apply` plays beside training, here with 5 % more time allowed; the database keeps all of it.

# %%
with rubato.Results(db) as results:
    chosen = results.plans.where(granularity="pass", slack_pct=5)[0]
rubato.run("export", "--plan", "latest", "--plan-id", chosen["plan_id"], "--db", db, "-o", OUT / "plan.json")
plan = rubato.load_plan(OUT / "plan.json").chosen
for segment in plan.gpu().segments:
    print(f"{segment.pass_name}: {segment.clock.core_mhz:.0f} MHz")
print(f"promised: energy {plan.promise.energy_change_pct:+.1f} %, time {plan.promise.time_change_pct:+.1f} %")

# %% [markdown]
# ## Played, without setting anything
# Marks come from hooks in real training; `backend="dry"` sets no clock.

# %%
with rubato.Applier(plan=OUT / "plan.json", backend="dry") as applier:
    for _ in range(3):
        for segment in plan.gpu().segments:
            applier.mark(segment.pass_name)
            time.sleep(segment.time_s)  # stands for the pass
        applier.step()
print(applier.report())

# %% [markdown]
# ## A paper
# A published experiment beside the model.

# %%
print("\n".join(rubato.run("reproduce", "spaan2026").splitlines()[:12]))

# %% [markdown]
# ## A cluster
# Clocks for every pass of pipeline-parallel training, from a measured profile.

# %%
pipeline = rubato.explore(HERE / "gpt3-175b-a100.csv", blocked_power=83.64, slack=[0, 5])
pipeline.plans[["slack_pct", "clocks", "time_s", "energy_j", "energy_change_pct", "time_change_pct"]]
