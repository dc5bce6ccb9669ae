"""The board of tables: methods that take whole tables, compared on many of them by one protocol."""
