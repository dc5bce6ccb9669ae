"""Diagnosis of predictions: is the total biased, where, why, and what would help."""

from transun.diagnosis.result import Diagnosis
from transun.diagnosis.run import diagnose, diagnose_rows, diagnose_table

__all__ = ["Diagnosis", "diagnose", "diagnose_rows", "diagnose_table"]
