"""From VNFD files (TOSCA, ETSI SOL001) to a Descriptor. The SOL001 types are known natively."""
