"""Policies: limits on what may be learned from a program's output, checked, monitored and enforced."""

from privug.errors import NoRepair
from privug.policy.check_reports import Report, assert_private, check_all
from privug.policy.checking import check
from privug.policy.clauses import belief, bounds, change, max_belief, measure
from privug.policy.declared_checks import Check, Outcome, checks_of
from privug.policy.enforcement import Enforcement, Utility, enforce
from privug.policy.explaining import Explanation, explain
from privug.policy.monitoring.log import LogError
from privug.policy.monitoring.log_audit import LogAudit, audit_log
from privug.policy.monitoring.monitor import Answer, Monitor
from privug.policy.policies import Policy
from privug.policy.policy_files import read, read_checks
from privug.policy.verdict import Evidence, Status, Verdict
from privug.policy.worst_attacker import Family, WorstAttacker, any_prior, box, within, worst_attacker

__all__ = [
    "Answer",
    "Check",
    "Enforcement",
    "Evidence",
    "Explanation",
    "Family",
    "LogAudit",
    "LogError",
    "Monitor",
    "NoRepair",
    "Outcome",
    "Policy",
    "Report",
    "Status",
    "Utility",
    "Verdict",
    "WorstAttacker",
    "any_prior",
    "assert_private",
    "audit_log",
    "belief",
    "bounds",
    "box",
    "change",
    "check",
    "check_all",
    "checks_of",
    "enforce",
    "explain",
    "max_belief",
    "measure",
    "read",
    "read_checks",
    "within",
    "worst_attacker",
]


def __dir__() -> list[str]:
    return __all__
