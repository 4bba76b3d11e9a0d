"""User tools, in any kernel: the magic, the client, and how they look."""
