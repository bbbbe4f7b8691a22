"""A container registry as a VNF: what is installed on its machine, how it serves, and the images it begins with."""
