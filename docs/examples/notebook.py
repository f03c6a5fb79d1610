# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---
# %% [markdown]
# # From a capture to a plan
# A profiled training step goes in; the clocks that save energy, and the file that sets them, come out. Open it in Jupyter with
# jupytext, or run it: `python3 notebook.py [FOLDER]`. It needs pandas and matplotlib, `rubato` on the PATH, and the package rubato.

# %%
import sys
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
tables = rubato.explore(CAPTURE, captured_clock="1593/1410", granularity=["iteration", "pass"], per_kernel=True, db=db)
run = tables["run"].iloc[0]
print(f"{run.gpu}: captured {1e3 * run.captured_s:.1f} ms, reproduced {1e3 * run.reproduced_s:.1f} ms, {run.anchored_pct:.0f} % anchored, "
      f"{run.guessed_split_pct:.0f} % with a guessed split")

# %% [markdown]
# ## What the plans promise
# Energy and time against the default clocks; bars span the interval over what the capture leaves open.

# %%
plans = tables["plans"]
figure, axes = plt.subplots(figsize=(6, 4))
for granularity, rows in plans.groupby("granularity"):
    spread = [rows.energy_change_pct - rows.energy_change_low_pct, rows.energy_change_high_pct - rows.energy_change_pct]
    axes.errorbar(rows.time_change_pct, rows.energy_change_pct, yerr=[s.clip(lower=0) for s in spread], fmt="o-", label=granularity)
axes.axhline(0, color="grey", linewidth=0.8)
axes.set_xlabel("time against default clocks, %")
axes.set_ylabel("energy against default clocks, %")
axes.legend()
figure.savefig(OUT / "plans.svg")

# %% [markdown]
# ## Where the time goes
# The ten kernels that take longest under the plan per iteration without slack.

# %%
kernels = tables["kernels"]
top = kernels[(kernels.granularity == "iteration") & (kernels.slack_pct == 0)].groupby("kernel").time_s.sum().nlargest(10)
figure, axes = plt.subplots(figsize=(6, 4))
axes.barh([name[:40] for name in top.index[::-1]], 1e3 * top.values[::-1])
axes.set_xlabel("time, ms")
figure.tight_layout()
figure.savefig(OUT / "kernels.svg")

# %% [markdown]
# ## The plan as a file
# What `rubato.apply` plays beside training, here with 5 % more time allowed; the database keeps all of it.

# %%
with rubato.Results(db) as results:
    stored = results.plans
    chosen = stored[(stored.granularity == "pass") & (stored.slack_pct == 5)].iloc[0]
rubato.run("export", "--plan", "latest", "--plan-id", int(chosen.plan_id), "--db", db, "-o", OUT / "plan.json")
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
        applier.mark("forward")
        applier.mark("backward")
        applier.step()
print(applier.report())
