"""From a CSAR to a Descriptor. A package is untrusted: read with limits, checked, never executed here."""
