"""Find a size at which a task can tell variants apart, and a learning rate for each variant.

Only validation is read, and only seeds 100 to 104, which no published run uses. Trials are cells
of a run folder, so that a stopped calibration goes on where it was.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from bench.api import registry
from bench.api.calibration import Choice, Setting
from bench.api.config import build_config
from bench.api.errors import InvalidConfig
from bench.api.selector import Value, parse
from bench.api.task import TASKS
from bench.calibration_trials import JUDGED, RATES, Competitor, OutOfTime, Trials
from results.environment import collect
from results.statistics import paired_difference

LOWEST, HIGHEST = 0.2, 0.9
"""Shares of the range between which the baseline has to be."""
SATURATED, FEW = 0.99, 0.25
"""Share of the range from which on a score is saturated, and the share of entries that may be."""
ENOUGH = 0.5
"""Share of the entries that have to be looked at for saturation where the time is up."""
RULE = (
    f"the baseline lies between {LOWEST:g} and {HIGHEST:g} of the range of the ranking metric, the "
    "baseline or the best entry is apart from uniform attention in its network (95% t interval of "
    f"the paired difference over {len(JUDGED)} seeds), and at most {FEW:.0%} of the entries are "
    f"saturated ({SATURATED:g} of the range or more)"
)

FIXED = "The size is that of the preset, for the comparison is about it."
NO_OTHERS = "The size is that of the preset, for the task declares no others."
BEGINNING = "A trial ends after {} updates, before a whole training does."
UNFINISHED = "Not every trial was done, so nothing is chosen yet."
RATES_RULE = (
    f"each competitor has that of {len(RATES)} learning rates whose one trial has the best value "
    "on validation"
)


@dataclass
class Calibration:
    """One task on its way to a choice."""

    trials: Trials

    def __post_init__(self) -> None:
        """Find the range of each setting.

        Raises:
            InvalidConfig: The task declares sizes, and its metric has no range to judge them by.
        """
        self.task, self.target = self.trials.task, self.trials.target
        self.metric = self.target.ranking_metric()
        if self.trials.rates_alone:
            return
        self.ranges = {one.name: self._range(one) for one in self.target.calibration}

    def share(self, setting: Setting, value: float) -> float:
        """How far a value is from the worst to the best possible one."""
        worst, best = self.ranges[setting.name]
        return (value - worst) / (best - worst)

    def _range(self, setting: Setting) -> tuple[float, float]:
        """The score without learning, and the best one."""
        registered = registry.find(TASKS, self.task.name)
        options = {**self._options(setting), **self.task.options}
        chance = self.target.chance_of(build_config(registered.config, options, self.task.name))
        bounds = (self.metric.low, self.metric.high)
        low, high = bounds if self.metric.better == "higher" else bounds[::-1]
        worst = low if chance is None else chance
        best = high if self.target.ceiling is None else self.target.ceiling
        if worst is None or best is None:
            raise InvalidConfig(
                f"{self.metric.title} of {self.task.name} has no range to be in the middle of; "
                "declare `chance` and `ceiling` on the task."
            )
        return worst, best

    def _options(self, setting: Setting) -> dict[str, Value]:
        """Task options of a setting, at the sizes of the preset."""
        usual = self.target.presets[self.trials.preset].options_selector.options
        return {**usual, **parse(setting.options).options}

    def choose(self) -> Choice:
        """Try the settings in order, and tune everything at the first one that keeps the rule.

        Where the preset's size is fixed, or the task declares no other, learning rates alone are
        chosen.

        Raises:
            OutOfTime: Before a setting was found, before every competitor was tuned where the
                size is fixed, or where the machine ended a trial.
        """
        if self.trials.rates_alone:
            setting = Setting(options=self.task.name)
            seen = [FIXED if self.trials.about_size else NO_OTHERS]
            tried = setting
            if steps := self.trials.steps:
                # in the name of the setting, so that trials of another length are not counted
                tried = replace(setting, protocol=f"adam[steps={steps}]")
                seen.append(BEGINNING.format(steps))
            return self._choice(setting, self._rates(tried), seen, RATES_RULE)
        seen = []
        for setting in self.target.calibration:
            if setting.given:
                return self._choice(setting, self._rates(setting), [setting.given], RATES_RULE)
            wrong = self._wrong_with(setting)
            seen.append(f"{setting.name}: {wrong or self._told(setting)}")
            if not wrong:
                try:
                    rates = self._rates(setting)
                except OutOfTime:
                    if self.trials.lost or self.trials.too_long:
                        raise  # not the clock: the same command tries that trial again
                    rates = {}
                    seen.append(
                        "The time was up before every competitor had its trials of learning rates, "
                        "so all keep that of the task."
                    )
                return self._choice(setting, rates, seen)
        seen.append("No setting keeps the rule, so the sizes of the preset stay.")
        return self._choice(None, {}, seen)

    def timed_again(self) -> Choice:
        """The kept choice, with what a cell takes as it is measured here and now.

        Raises:
            InvalidConfig: Nothing is kept whose time counts.
            OutOfTime: Not every training ended.
        """
        kept = self.trials.kept
        if kept is None or kept.chosen is None or self.trials.rates_alone:
            raise InvalidConfig(
                f"calibrate: no size of {self.task.show()} was chosen for {self.trials.preset}, so "
                "there is no time to measure; leave out --retime."
            )
        return replace(kept, seconds=self.trials.seconds_again(kept.chosen, kept.rates))

    def unfinished(self) -> Choice:
        """No choice, but every trial so far, so that `--keep` can go on from them elsewhere."""
        rule = RATES_RULE if self.trials.rates_alone else RULE
        return self._choice(None, {}, [UNFINISHED], rule)

    def _wrong_with(self, setting: Setting) -> str:
        """Why a setting does not keep the rule; empty where it does.

        Raises:
            OutOfTime: It is not known yet.
            InvalidConfig: The baseline cannot be trained here.
        """
        base = self._judged(setting, self.trials.baseline)
        if not base:
            raise InvalidConfig(
                f"{self.task.name}: no trial of the baseline has a value "
                f"({self.trials.last_detail()}); mend that and calibrate again."
            )
        middle = self.share(setting, fmean(base.values()))
        if not LOWEST <= middle <= HIGHEST:
            return f"the baseline is at {middle:.2f} of the range."
        apart = self._apart(setting, self.trials.baseline)
        firsts, entries = self._firsts(setting, partly=apart), self.trials.entries
        if len(firsts) < ENOUGH * len(entries):
            lacking = len(entries) - len(firsts)
            why = self.trials.last_detail().rstrip(".")
            return f"{lacking} of {len(entries)} entries have no value ({why})."
        known = [self.share(setting, found) for found in firsts.values()]
        saturated = sum(share >= SATURATED for share in known)
        if saturated > FEW * len(known):
            return f"{saturated} of {len(known)} entries are saturated."
        if apart or self._apart(setting, self._leader(setting, firsts)):
            return ""
        return "nothing is apart from uniform attention."

    def _leader(self, setting: Setting, firsts: Mapping[str, float]) -> Competitor | None:
        """The entry with the best first trial; controls are no entries to choose among."""
        entries = [one for one in self.trials.entries if one.spec.registered.control is None]
        known = [one for one in entries if one.name in firsts]
        return max(known, key=lambda one: self.share(setting, firsts[one.name]), default=None)

    def _apart(self, setting: Setting, one: Competitor | None) -> bool:
        """Whether a competitor differs from uniform attention in its network, by judging seeds."""
        if one is None:
            return False
        uniform = self.trials.uniform_beside(one)
        mine, other = self._judged(setting, one), self._judged(setting, uniform)
        seeds = sorted(mine.keys() & other.keys())
        if len(seeds) < 2:
            return False
        found = paired_difference([mine[s] for s in seeds], [other[s] for s in seeds])
        return found.estimate != 0 if found.without_spread else not found.contains(0)

    def _firsts(self, setting: Setting, *, partly: bool) -> dict[str, float]:
        """The value of each entry in its first trial, where it has one.

        Args:
            setting: What is tried.
            partly: Whether half of the entries are enough where the time is up.

        Raises:
            OutOfTime: Too few have one, and not all were tried.
        """
        firsts: dict[str, float] = {}
        tried = 0
        self.trials.ahead(setting, self.trials.entries, RATES[:1])
        for one in self.trials.entries:
            try:
                found = self.trials.of_rates(setting, one, RATES[:1])
            except OutOfTime:
                if not partly:
                    raise
                continue
            tried += 1
            if found:
                firsts[one.name] = found[RATES[0]]
        if tried < len(self.trials.entries) and len(firsts) < ENOUGH * len(self.trials.entries):
            raise OutOfTime
        return firsts

    def _told(self, setting: Setting) -> str:
        """What was seen of a setting that keeps the rule."""
        trials = self.trials
        base, uniform = (self._judged(setting, one) for one in (trials.baseline, trials.uniform))
        known = {(where, who) for where, who, _, _ in trials.values}
        tried = sum((setting.name, one.name) in known for one in trials.entries)
        told = f"{self.metric.title} of the baseline {fmean(base.values()):.3f}"
        if uniform:
            told += f", of uniform attention {fmean(uniform.values()):.3f}"
        return f"{told}; {tried} of {len(trials.entries)} entries were looked at for saturation."

    def _judged(self, setting: Setting, one: Competitor) -> Mapping[int, float]:
        """Values on the seeds that judge, at the best rate of this competitor."""
        found = self.trials.of_rates(setting, one)
        return self.trials.of_seeds(setting, one, self._best(found)) if found else {}

    def _rates(self, setting: Setting) -> dict[str, float]:
        """The best rate of every competitor, each after the same number of trials."""
        best = {}
        everyone = (self.trials.baseline, self.trials.uniform, *self.trials.entries)
        self.trials.ahead(setting, everyone)
        for one in everyone:
            found = self.trials.of_rates(setting, one)
            if found:
                best[one.name] = self._best(found)
        return best

    def _best(self, found: Mapping[float, float]) -> float:
        side = min if self.metric.better == "lower" else max
        return side(found, key=lambda rate: found[rate])

    def _choice(
        self,
        setting: Setting | None,
        rates: dict[str, float],
        seen: Sequence[str],
        rule: str = RULE,
    ) -> Choice:
        kept = self.trials.kept
        if kept is not None:
            seen = [*seen, f"Trials of {kept.commit[:12] or 'an unknown commit'} were kept."]
        # where the size is fixed, the task's own figure holds for all, not the baseline's alone
        timed = not self.trials.rates_alone
        if kept is not None and kept.chosen == setting:
            seconds = kept.seconds
        else:
            seconds = self.trials.seconds_of(setting, rates) if setting and timed else 0.0
        facts = collect(self.trials.session.settings.threads)
        trials: list[dict[str, Any]] = [
            {"setting": where, "competitor": who, "lr": rate, "seed": seed, "value": value}
            for (where, who, rate, seed), value in self.trials.values.items()
        ]
        return Choice(
            task=self.task.show(),
            preset=self.trials.preset,
            chosen=setting,
            why=" ".join(seen),
            rule=rule,
            rates=rates,
            baseline=self.trials.baseline.name,
            trials=tuple(trials),
            seconds=seconds,
            commit=facts.git_revision,
            environment={
                "cpu": facts.cpu,
                "python": facts.python,
                "torch": facts.packages.get("torch", ""),
            },
        )
