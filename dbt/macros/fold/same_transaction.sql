{# Do a change and one after it at the same key belong to one transaction? Sources use ids again: a run of an id ends
   with its last event, and its counter only grows. Where a source tells no counters, the id alone decides. In: how
   columns of either are read, `v.{}`. -#}
{% macro same_transaction(first, second) -%}
({{ first.format('transaction_id') }} = {{ second.format('transaction_id') }}
      and {{ first.format('transaction_last_event') }} is not true
      and coalesce({{ first.format('transaction_event_counter') }}
                   < {{ second.format('transaction_event_counter') }}, true))
{%- endmacro %}
