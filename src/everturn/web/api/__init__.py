"""What programs can ask: every operation with its parameters and the shape of its answer. The OpenAPI document is made of
this list (`openapi`), and the application answers nothing under /api that is not on it."""

from __future__ import annotations

from everturn.web.api import analytics, operation, sessions
from everturn.web.api.operation import Operation

OPERATIONS: tuple[Operation, ...] = (*sessions.READ_OPERATIONS, *analytics.OPERATIONS, *sessions.CHANGE_OPERATIONS)
OPERATIONS += (operation.openapi_operation(OPERATIONS),)
