{# Each version of a key holds from before it ends, and ends before the next one begins; a gap between two is a time in
   which the row did not exist. In: columns of ours that the table calls otherwise. #}
{% test one_version_at_a_time(model, key, ours={}) %}
{%- set from_seq = ours.get('valid_from_seq', 'valid_from_seq') -%}
with followed as (
  select {{ ours.get('source', 'source') }}, {{ columns_of(key) }}, {{ from_seq }} as __from_seq,
         {{ ours.get('valid_to_seq', 'valid_to_seq') }} as __to_seq,
         lead({{ from_seq }}) over (partition by {{ ours.get('source', 'source') }}, {{ columns_of(key) }}
                             order by {{ from_seq }}) as __next_from_seq
  from {{ model }}
)

select * from followed where __from_seq is null or __to_seq <= __from_seq or __next_from_seq < coalesce(__to_seq, '~')
{% endtest %}
