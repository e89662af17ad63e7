"""Templates, workload files and Compose files: YAML in, validated specs out, every fault with its line.

Prohibited: network, the database, the cluster.
"""

from podwarden.catalog.catalogue import Broken, Catalogue, load
from podwarden.catalog.compose import ComposePlan, is_compose, read_compose, wanted_env_files
from podwarden.catalog.compose_values import read_dotenv
from podwarden.catalog.files import read_file
from podwarden.catalog.generated import Generated, generate
from podwarden.catalog.overrides import Overrides
from podwarden.catalog.parameters import Parameter
from podwarden.catalog.template import Template

__all__ = [
    "Broken",
    "Catalogue",
    "ComposePlan",
    "Generated",
    "Overrides",
    "Parameter",
    "Template",
    "generate",
    "is_compose",
    "load",
    "read_compose",
    "read_dotenv",
    "read_file",
    "wanted_env_files",
]
