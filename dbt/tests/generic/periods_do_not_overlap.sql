{# Versions of one key follow each other; a gap is a time in which the row did not exist. In: columns of ours that the
   table calls otherwise. #}
{% test periods_do_not_overlap(model, key, ours={}) %}
{%- set from_seq = ours.get('valid_from_seq', 'valid_from_seq') -%}
with followed as (
  select {{ ours.get('source', 'source') }}, {{ columns_of(key) }},
         {{ ours.get('valid_to_seq', 'valid_to_seq') }} as to_seq,
         lead({{ from_seq }}) over (partition by {{ ours.get('source', 'source') }}, {{ columns_of(key) }}
                             order by {{ from_seq }}) as next_from_seq
  from {{ model }}
)

select * from followed where next_from_seq < coalesce(to_seq, '~')
{% endtest %}
