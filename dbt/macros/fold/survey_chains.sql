{# Does a row change its key twice in this batch? True where some key is both reached and left by key changes. -#}
{% macro survey_chains(name, filter) -%}
  {%- set key = contract(name).key -%}
  {%- set query -%}
with moves as (
  select * from {{ ref(name ~ '__before_after') }} where key_changed and {{ filter }}
)

select 1 as found
from moves l left semi join moves r on l.source = r.source {%- for k in key %} and coalesce(l.before.`{{ k }}`, l.after.`{{ k }}`) = coalesce(r.after.`{{ k }}`, r.before.`{{ k }}`){% endfor %}
limit 1
  {%- endset -%}
  {{ return(run_query(query) | list | length > 0) }}
{%- endmacro %}
