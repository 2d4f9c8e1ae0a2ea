"""The runtime of controllers: work queues, the manager, leader election, writes, conditions and events."""
