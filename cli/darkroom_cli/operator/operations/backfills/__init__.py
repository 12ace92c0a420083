"""Operations on backfills."""
