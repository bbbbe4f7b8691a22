"""Who subscribed is told: notifications are written with the change they tell of, and delivered until they arrive."""
