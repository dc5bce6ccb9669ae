"""A/B tests of amounts: did an arm change the value per user, by how much, and how many users would a test need."""

from transun.experiments.analysis import ABTest, abtest
from transun.experiments.planning import TestPlan, plan_abtest
from transun.experiments.user_log import LogColumns

__all__ = ["ABTest", "LogColumns", "TestPlan", "abtest", "plan_abtest"]
