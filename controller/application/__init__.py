"""Writes the state of applications and of their kinds: the leader writes, from facts that every replica sees."""
