"""The real-data tables and the figures of the paper: the runs each needs, its report, and the claims it answers."""
