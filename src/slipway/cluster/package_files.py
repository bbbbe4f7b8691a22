"""Which files of the package the parameters name, so that a missing one is told before anything is made."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from slipway.cluster.parameters import BUILT_IN_CNIS, PATH, ClusterParameters
from slipway.cluster.reading import Problems, Refusal


def named_files(parameters: ClusterParameters) -> Iterator[tuple[str, str]]:
    """(parameter, file). What only the kubespray way uses is not among them."""
    possible = [
        ("script_path", parameters.script_path),
        ("cni", parameters.cni if parameters.cni not in BUILT_IN_CNIS else None),
        ("helm_installation_script_path", parameters.helm_installation_script_path),
        ("helm.path", parameters.helm.path if parameters.helm else None),
        ("source.signing_key_path", parameters.source.signing_key_path),
    ]
    possible += [(f"source.files[{at}].path", one.path) for at, one in enumerate(parameters.source.files)]
    possible += [
        (f"private_registry_connection_info[{at}].certificate_path", one.certificate_path)
        for at, one in enumerate(parameters.private_registry_connection_info)
    ]
    possible += [
        (f"pv_registration_params[{at}].pv_manifest_file_path", one.pv_manifest_file_path)
        for at, one in enumerate(parameters.pv_registration_params)
    ]
    yield from ((parameter, file) for parameter, file in possible if file is not None)


def check_files(parameters: ClusterParameters, files: Collection[str]) -> None:
    """BadRequest that names every file that the package does not have."""
    problems = Problems()
    for parameter, file in named_files(parameters):
        if file not in files:
            refusal = Refusal(f"the package has no file {file}", "name one that it has, or add it to the package")
            problems.add(f"{PATH}.{parameter}", refusal)
    problems.complain()
