"""Operators, one table entry each; `table` holds the table, the other files fill it."""
