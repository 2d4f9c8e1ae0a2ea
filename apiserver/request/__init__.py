"""The request: its context, RequestInfo, query parameters and options."""
