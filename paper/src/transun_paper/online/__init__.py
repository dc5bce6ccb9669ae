"""The paper's online experiments as simulations with a known truth: rankings, tests of them, and drift."""
