"""What is written about applications and their kinds: by the leader, from what every replica sees."""
