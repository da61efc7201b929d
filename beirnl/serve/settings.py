"""What a service may be told, and the limits that it keeps."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

LONGEST_QUERY = 2_000  # characters; a longer query of the set is asked by its id
MOST_HITS = 100
MOST_DOCUMENTS = 100  # in one answer
MOST_QUERIES = 200  # in one answer


class Limits(BaseModel):
    """How much one replica takes.

    Attributes:
        concurrency: requests that are worked on at once; more are told to come back later.
        timeout: seconds until a request is given up.
        retry_after: seconds after which who was sent away may come back.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    concurrency: int = Field(default=16, gt=0)
    timeout: float = Field(default=30.0, gt=0)
    retry_after: int = Field(default=1, gt=0)


class Settings(Limits):
    """What the application is built from; the arguments in a config file of Ray Serve.

    Attributes:
        experiment: path of the experiment file.
        replicas: processes that search; they map the same files.
        model_replicas: most processes of each encoder and reranker, between one and which they are scaled.
        batch: most texts (of rerankers, queries) that a model is asked at once.
        batch_wait: seconds that a model waits for more.
        cpus: of each process.
    """

    experiment: str
    replicas: int = Field(default=2, gt=0)
    model_replicas: int = Field(default=2, gt=0)
    batch: int = Field(default=16, gt=0)
    batch_wait: float = Field(default=0.005, ge=0)
    cpus: float = Field(default=1.0, ge=0)

    @property
    def limits(self) -> Limits:
        """Those of a replica."""
        return Limits(concurrency=self.concurrency, timeout=self.timeout, retry_after=self.retry_after)


Order = Literal["difference", "id"]
