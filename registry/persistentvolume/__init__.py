"""PersistentVolumes as those see them who may get the claims that they are bound to."""
