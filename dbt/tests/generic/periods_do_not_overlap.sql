{# Versions of one key follow each other; a gap is a time in which the row did not exist. #}
{% test periods_do_not_overlap(model, key) %}
with followed as (
  select *, lead(valid_from_seq) over (partition by source, {{ columns_of(key) }} order by valid_from_seq) as next_from_seq from {{ model }}
)

select * from followed where next_from_seq < coalesce(valid_to_seq, '~')
{% endtest %}
