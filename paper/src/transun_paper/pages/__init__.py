"""Reports as pages: Markdown and pictures."""
