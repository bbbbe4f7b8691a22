"""Stand-ins for modules of OpenStack Tacker that user data of packages imports: their names, Slipway's own code."""
