"""The routes of the platform's services, which we write with `gateway.platformRoutes: true` instead of the charts."""
