"""Why a request gets no answer."""


class ProblemError(Exception):
    """A request that is refused or cannot be answered; the client is told so.

    Args:
        status: of HTTP.
        detail: what is wrong and what can be done, for whoever asked.
        retry_after: seconds after which to come back, or None.
    """

    def __init__(self, status: int, detail: str, retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.retry_after = status, detail, retry_after

    @property
    def headers(self) -> dict[str, str]:
        """What the answer has beside its body."""
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
