module slipway/pause

go 1.24.0
