"""All experiments as one page that needs no script and nothing from a network."""

import datetime
from collections.abc import Sequence

import privug as pv
from privug.markup import page as html_page
from privug.markup import paragraphs, table, text

from .experiment import Experiment, summary

TITLE = "The paper, reproduced"
HEADER = ("quantity", "Privug", "exact", "paper", "agrees", "note")
# On narrow screens each line of a table becomes a block, whose cells say which column they are of.
_STYLE = """
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,26rem),1fr));gap:1rem}
.figures figure{margin:0}
.lines td{white-space:normal;text-align:left}
.lines th,.lines td{padding-right:1.1rem}
.lines td:last-child{overflow-wrap:anywhere}
.missed,.failure{color:#b3261e;font-weight:600}
@media (prefers-color-scheme:dark){.missed,.failure{color:#ff9d94}}
@media (max-width:40rem){
.lines thead{position:absolute;left:-99rem}
.lines table,.lines tbody,.lines tr,.lines th,.lines td{display:block;border:0;padding:0}
.lines tr{border-bottom:1px solid var(--line);padding:.5rem 0}
.lines td:empty{display:none}
.lines td::before{color:var(--soft);display:inline-block;min-width:4.5rem;padding-right:.5rem}
.lines td:nth-child(2)::before{content:"Privug"}.lines td:nth-child(3)::before{content:"exact"}
.lines td:nth-child(4)::before{content:"paper"}.lines td:nth-child(5)::before{content:"agrees"}
.lines td:nth-child(6)::before{content:"note"}
}
"""


def page(experiments: Sequence[Experiment]) -> str:
    """Return a page of what experiments have found."""
    links = "".join(f'<li><a href="#{text(e.name)}">{text(e.paper or e.title)}</a></li>' for e in experiments)
    top = f'<header><h1>{TITLE}</h1><nav aria-label="Contents"><ul>{links}</ul></nav></header>'
    sections = "\n".join(_section(experiment) for experiment in experiments)
    main = f'<main id="content">{_verdict(experiments)}{sections}</main>'
    return html_page(TITLE, f"{top}\n{main}\n{_footer()}", _STYLE)


def _verdict(experiments: Sequence[Experiment]) -> str:
    told = [f"{summary(experiments)}."]
    told += [f"{e.name} misses {line.quantity}." for e in experiments if e.findings for line in e.findings.missed]
    return f'<section class="verdict" aria-label="Verdict">{paragraphs(told)}</section>'


def _section(experiment: Experiment) -> str:
    parts = [f'<section aria-labelledby="{text(experiment.name)}">']
    parts.append(f'<h2 id="{text(experiment.name)}">{text(experiment.title)}</h2>')
    where = f"{experiment.paper} of the paper; " if experiment.paper else ""
    repeat = f"privug reproduce {experiment.name}"
    parts.append(f'<p class="soft">{text(where)}{experiment.seconds:.1f} s; <code>{text(repeat)}</code></p>')
    if experiment.failure:
        parts.append(f'<p class="failure">Failed: {text(experiment.failure)}</p>')
    if experiment.findings is not None:
        rows = [line.texts for line in experiment.findings.lines]
        lines = table(HEADER, rows, numbers=0).replace("<td>NO</td>", '<td class="missed">NO</td>') if rows else ""
        parts.append(f'<div class="wide lines">{lines}</div>')
        shown = "".join(
            f'<figure><div class="picture">{svg}</div><figcaption>{text(caption)}</figcaption></figure>'
            for caption, svg in experiment.pictures.items()
        )
        parts.append(f'<div class="figures">{shown}</div>')
        parts.append(paragraphs(experiment.findings.notes))
    return "".join([*parts, "</section>"])


def _footer() -> str:
    return f"<footer><p>Privug {text(pv.__version__)}, {datetime.date.today().isoformat()}.</p></footer>"
