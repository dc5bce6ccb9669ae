"""What every room needs and no user asks for: files, optional libraries, progress bars, the text form of objects."""
