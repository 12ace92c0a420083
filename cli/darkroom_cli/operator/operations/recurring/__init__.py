"""Operations on schedules of recurring jobs."""
