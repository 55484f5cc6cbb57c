"""What programs can ask: every operation with its parameters and the shape of its answer. The OpenAPI document is made of
this list (`openapi`), and the application answers nothing under /api that is not on it."""

from __future__ import annotations

from everturn.web.api import analysing, changing, openapi, reading
from everturn.web.api.operations import Operation

OPERATIONS: tuple[Operation, ...] = (*reading.READ_OPERATIONS, *analysing.OPERATIONS, *changing.CHANGE_OPERATIONS)
OPERATIONS += (openapi.openapi_operation(OPERATIONS),)
