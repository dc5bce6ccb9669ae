"""The real-data tables and the figures of the paper: what each needs, what it shows and whether its claim holds."""
