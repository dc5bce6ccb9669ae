"""Reports for people: Markdown pages and pictures."""
