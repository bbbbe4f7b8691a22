"""What Slipway tells about itself while it works: numbers, log lines, traces."""
