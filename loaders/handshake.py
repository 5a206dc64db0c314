"""What the two ends of a new connection say, so that each knows the other holds the key, which neither sends.

The first rank sends a challenge; the other answers with a nonce of its own, its rank and a proof; the first confirms
with another proof. A proof is an HMAC (RFC 2104) with SHA-256 over who gives it, the size of the world, the challenge
and the answer: what was heard on one connection opens no other, and no proof serves as one of the other kind.
"""

from __future__ import annotations

import hmac
import secrets

__all__ = [
    "ANSWER_BYTES", "CHALLENGE_BYTES", "CONFIRMATION_BYTES", "answer", "challenge", "confirmation", "is_confirmation",
    "new_key", "rank_in",
]  # fmt: skip

_KEY_BYTES = 32
_RANK_BYTES = 8
_PROOF_BYTES = 32
CHALLENGE_BYTES = 16
_WORDS_BYTES = CHALLENGE_BYTES + _RANK_BYTES
ANSWER_BYTES = _WORDS_BYTES + _PROOF_BYTES
CONFIRMATION_BYTES = _PROOF_BYTES


def new_key() -> bytes:
    return secrets.token_bytes(_KEY_BYTES)


def challenge() -> bytes:
    """Bytes that never come again."""
    return secrets.token_bytes(CHALLENGE_BYTES)


def answer(key: bytes, challenged: bytes, rank: int, size: int) -> bytes:
    """What a rank says to a challenge."""
    words = challenge() + rank.to_bytes(_RANK_BYTES, "little")
    return words + _proof(key, b"rank", size, challenged + words)


def rank_in(key: bytes, challenged: bytes, answered: bytes, size: int) -> int | None:
    """Which rank but the first has given the answer; None for a stranger."""
    words, proof = answered[:_WORDS_BYTES], answered[_WORDS_BYTES:]
    if not hmac.compare_digest(proof, _proof(key, b"rank", size, challenged + words)):
        return None
    rank = int.from_bytes(words[CHALLENGE_BYTES:], "little")
    return rank if 0 < rank < size else None


def confirmation(key: bytes, challenged: bytes, answered: bytes, size: int) -> bytes:
    """What the first rank says to a right answer."""
    return _proof(key, b"first", size, challenged + answered)


def is_confirmation(key: bytes, challenged: bytes, answered: bytes, size: int, heard: bytes) -> bool:
    """Whether the first rank has said it."""
    return hmac.compare_digest(heard, confirmation(key, challenged, answered, size))


def _proof(key: bytes, who: bytes, size: int, words: bytes) -> bytes:
    # All parts but `who` are of fixed length for either: no two meanings share their bytes.
    return hmac.digest(key, who + size.to_bytes(_RANK_BYTES, "little") + words, "sha256")
