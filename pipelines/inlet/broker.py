"""What `from:` of a source says of a Kafka broker: where it is, which topics, from where on, how to get in.

    from:
      transport: kafka
      servers: kafka1:9092, kafka2:9092
      topics: [shop.orders, "depot.*"]    # names, or patterns; left out: the topics that `tables` names
      start: earliest                     # latest, a time (2026-01-05T00:00:00Z), or {shop.orders/0: 1200}
      missing_offsets: stop               # accept: go on behind messages that nobody can read any more
      options:                            # of librdkafka, as they are
        security.protocol: SASL_SSL
        sasl.username: inlet
        sasl.password: ${KAFKA_PASSWORD}  # secrets come from the environment

Source: the configuration page of librdkafka for the names of options.
"""

import fnmatch
import re
from datetime import UTC, date, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

SECRET = re.compile(r"password|passphrase|secret|key\.pem$|oauthbearer\.config|jaas", re.IGNORECASE)
VARIABLE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")  # filled in by lake/secrets.py
OURS = {  # Inlet's own to say: its offsets are commits of the lakehouse, and it reads what is committed
    "metadata.broker.list": "`servers` says where the broker is",
    "bootstrap.servers": "`servers` says where the broker is",
    "group.id": "Inlet keeps its own place, in bronze.files",
    "isolation.level": "Inlet reads what is committed",
    "auto.offset.reset": "`start` and `missing_offsets` say it",
    "enable.auto.commit": "Inlet keeps its own place, in bronze.files",
    "enable.partition.eof": "Inlet needs it",
}


class Broker(BaseModel):
    """A broker and its topics."""

    model_config = ConfigDict(extra="forbid")
    servers: str = Field(min_length=1)
    topics: list[str] = []
    start: str | dict[str, int] = "earliest"
    missing_offsets: Literal["stop", "accept"] = "stop"
    options: dict[str, str] = {}

    @field_validator("servers")
    @classmethod
    def _without_blanks(cls, servers: str) -> str:
        return re.sub(r"\s", "", servers)

    @field_validator("start", mode="before")
    @classmethod
    def _start(cls, start: Any) -> Any:
        if isinstance(start, date):  # YAML makes one, or a datetime, of what looks like it
            return start.isoformat()
        if isinstance(start, str) and start not in ("earliest", "latest"):
            try:
                datetime.fromisoformat(start)
            except ValueError:
                raise ValueError(
                    f"expected earliest, latest, a time or {{topic/partition: offset}}, found {start[:40]}"
                ) from None
        return start

    @field_validator("options", mode="before")
    @classmethod
    def _as_text(cls, options: Any) -> Any:
        """Options as librdkafka takes them. What is secret is never shown, not even when it is wrong."""
        if not isinstance(options, dict):
            raise ValueError("expected option: value")
        texts = {str(name): str(value).lower() if isinstance(value, bool) else value for name, value in options.items()}
        for name, value in texts.items():
            if name in OURS:
                raise ValueError(f"{name} is not to be set: {OURS[name]}")
            is_secret = SECRET.search(name) or isinstance(value, str) and re.search("://[^/]*@", value)
            if is_secret and not (isinstance(value, str) and VARIABLE.fullmatch(value)):
                raise ValueError(f"{name} is a secret: write ${{NAME}}, and set NAME in the environment")
        return {name: str(value) if isinstance(value, (int, float)) else value for name, value in texts.items()}

    @property
    def start_at(self) -> datetime | None:
        """The time to start at, where `start` is one. One without a zone is in UTC."""
        if not isinstance(self.start, str) or self.start in ("earliest", "latest"):
            return None
        at = datetime.fromisoformat(self.start)
        return at if at.tzinfo else at.replace(tzinfo=UTC)

    def chosen(self, names: list[str]) -> list[str]:
        """Those of a broker's topics that are meant, in order.

        >>> Broker(servers="h:1", topics=["a", "shop.*"]).chosen(["shop.x", "a", "b", "__consumer_offsets"])
        ['a', 'shop.x']
        """
        patterns = [topic for topic in self.topics if is_pattern(topic)]
        return sorted(
            name
            for name in names
            if name in self.topics
            or not name.startswith("__")
            and any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
        )

    @property
    def named(self) -> list[str]:
        """The topics that are named, and have to be there."""
        return [topic for topic in self.topics if not is_pattern(topic)]


def is_pattern(topic: str) -> bool:
    return any(sign in topic for sign in "*?[")
