"""The Secret with the wildcard certificate, in certMode existingSecret: we may not read it."""
