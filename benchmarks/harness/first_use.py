"""What Privug imports when it is first used, imported: that memory is none of a task's."""

import privug as pv

pv.configure(progress=False)
_attack = pv.Attack(lambda x, y: x + y, {"x": pv.DiscreteUniform(0, 1), "y": pv.Normal(0, sd=1)}, "x")
for _engine in ("exact", "sample"):
    pv.leakage.mutual_information(_attack.run(pv.near(0, within=0.5), engine=_engine, samples=100, seed=1).joint)
