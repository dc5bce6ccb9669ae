"""The tables and figures of the TranSUN paper, made anew, and the boards that transun is measured on."""
