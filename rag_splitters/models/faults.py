"""Whether to retry, give up or stop everything after an exception of a model's client."""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Iterator, Mapping

from rag_splitters.models.secrets import attribute_of

_MAX_WAIT = 120.0  # seconds

_TRANSIENT = frozenset(
    "RateLimitError TooManyRequests TooManyRequestsError ResourceExhausted ThrottlingException "
    "APITimeoutError TimeoutError Timeout TimeoutException ReadTimeout ConnectTimeout "
    "APIConnectionError ConnectionError ConnectError TransportError RemoteProtocolError "
    "ServiceUnavailable ServiceUnavailableError InternalServerError OverloadedError".split()
)
"""Names of exceptions, from many clients, after which another attempt may succeed."""

_FATAL = frozenset(
    "AuthenticationError Unauthenticated Unauthorized UnauthorizedError PermissionDeniedError "
    "PermissionDenied Forbidden ForbiddenError".split()
)
"""Names of exceptions after which no other request can succeed either."""

_QUOTA = re.compile(
    r"insufficient_quota|exceeded your current quota|billing_hard_limit|credit balance is too low",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model_not_found|DeploymentNotFound|\b(?:model|deployment)\b.{0,200}?"
    r"(?:not found|does not exist|not exist|unknown|not available|no longer)",
    re.IGNORECASE | re.DOTALL,
)
_REFUSED = re.compile(
    r"invalid_api_key|incorrect api key|UnrecognizedClient|AccessDenied|ExpiredToken", re.IGNORECASE
)


def is_fatal(error: BaseException) -> bool:
    """Whether every other request would fail, too.

    This is so if the key is rejected, the quota is used up, or there is no such model.
    """
    return any(map(_is_fatal, _chain(error)))


def _is_fatal(error: BaseException) -> bool:
    body = attribute_of(error, "response", "text")
    text = f"{str(error)[:5000]} {body[:5000] if isinstance(body, str) else ''}"
    status = _status(error)
    if status in (401, 402, 403) or _names(error) & _FATAL:
        return True
    if status == 429:
        return _QUOTA.search(text) is not None
    if status in (400, 404):
        return bool(_NO_MODEL.search(text) or _REFUSED.search(text))
    return False


def is_transient(error: BaseException) -> bool:
    """Whether it is a rate limit, a time-out, a lost connection or a server error."""
    if is_fatal(error):
        return False
    if str(error) == "Already borrowed":  # Hugging Face's tokenizers, used by two threads at once
        return True
    status = _status(error)
    if status is not None:
        return status in (408, 409, 429) or status >= 500
    return isinstance(error, (TimeoutError, ConnectionError)) or bool(_names(error) & _TRANSIENT)


def was_retried(error: BaseException) -> bool:
    """Whether the client has repeated the request itself before it raised the error.

    The clients of OpenAI, Anthropic and others count their attempts in a header of the request, and
    those of Amazon in the response.
    """
    for each in _chain(error):
        response = attribute_of(each, "response")
        headers = attribute_of(each, "request", "headers") or attribute_of(
            response, "request", "headers"
        )
        count = headers.get("x-stainless-retry-count") if isinstance(headers, Mapping) else None
        if isinstance(response, Mapping):
            count = response.get("ResponseMetadata", {}).get("RetryAttempts")
        if str(count or 0) != "0":
            return True
    return False


def retry_after(error: BaseException) -> float | None:
    """Return the seconds to wait according to the server's Retry-After header."""
    headers = attribute_of(error, "response", "headers")
    value = headers.get("retry-after") if headers is not None else None
    value = attribute_of(error, "retry_after") if value is None else value
    if value is None:
        return None
    try:
        seconds = float(value)
    except (TypeError, OverflowError):  # an exception of any package may have a `retry_after`
        return None
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(str(value)).timestamp() - time.time()
        except ValueError:
            return None
    return min(max(seconds, 0.0), _MAX_WAIT) if seconds == seconds else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes."""
    for _ in range(5):
        yield error
        if error.__cause__ is None:
            return
        error = error.__cause__


def _names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _status(error: BaseException) -> int | None:
    """Return the status code of a server's response, whatever the client calls it."""
    response = attribute_of(error, "response")
    if isinstance(response, Mapping):  # botocore
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return status if isinstance(status, int) else None
    holders = ((error, "status_code"), (response, "status_code"), (error, "status"))
    for holder, name in (*holders, (error, "code"), (error, "http_status")):
        status = attribute_of(holder, name)
        if isinstance(status, int) and 400 <= status < 600:
            return int(status)
    return None
