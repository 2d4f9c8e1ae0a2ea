"""The measured servers: started beside one another, or given by their URL."""
