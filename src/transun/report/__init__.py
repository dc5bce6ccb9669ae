"""Reports: one document from results, rendered to HTML, Markdown and the terminal."""
