"""A small decoder of several files, as a user's package has it."""
