"""Other people's traces into sessions: one file a format, the kind recognised by content."""
