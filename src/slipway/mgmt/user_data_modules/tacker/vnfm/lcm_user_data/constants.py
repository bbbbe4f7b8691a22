USER_DATA_TIMEOUT = 60  # seconds
