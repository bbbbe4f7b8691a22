"""From a CSAR to a Descriptor. Everything in a package is a stranger's: read with limits, checked, never executed."""
