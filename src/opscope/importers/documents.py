"""JSON trace documents as batches of typed events, whatever state the file is in."""
