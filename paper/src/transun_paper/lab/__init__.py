"""The lab: experiments as pure functions of their text, with results on disk."""
