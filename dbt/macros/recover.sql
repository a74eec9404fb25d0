{# Finish a batch that an earlier run staged and did not commit. -#}
{% macro recover(name) -%}
  {%- do small_query_settings(false) -%}
  {% call statement('recover_past') %}{{ apply_past(name, is_replacing=true) }}{% endcall %}
  {%- do apply_current(name) -%}
  {%- do commit(name) -%}
  {%- do reload_state(name) -%}
{%- endmacro %}
