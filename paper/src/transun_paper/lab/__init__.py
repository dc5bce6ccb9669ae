"""The lab: experiments that are functions of a text, whose results are kept on disk under it."""
