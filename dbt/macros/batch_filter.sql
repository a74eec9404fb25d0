{# A filter on source and batch_id in literals, so that file statistics prune. In: rows of `progress`, lagging. -#}
{% macro batch_filter(lagging, is_bounded=false) -%}
  {%- set ranges = {} -%}
  {%- for row in lagging -%}
    {%- set range = (row.applied_batch_id | int, row.through_batch_id | int if is_bounded) -%}
    {%- do ranges.setdefault(range, []).append(row.source) -%}
  {%- endfor -%}
  ({% for range, sources in ranges.items() -%}
  batch_id > {{ range[0] }} {% if is_bounded %}and batch_id <= {{ range[1] }} {% endif -%}
  and {{ source_filter(sources) }}{{ ' or ' if not loop.last }}
  {%- endfor %})
{%- endmacro %}
