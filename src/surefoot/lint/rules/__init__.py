"""All rules, by code. A rule is added here and nowhere else."""

from surefoot.lint.rules import declared, engines, langgraph, own, replay

ALL = (*own.RULES, *replay.RULES, *declared.RULES, *langgraph.RULES, *engines.RULES)
BY_CODE = {rule.code: rule for rule in ALL}
