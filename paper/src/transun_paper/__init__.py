"""The tables and figures of the TranSUN paper, made again, and the leaderboards that transun is measured on."""
