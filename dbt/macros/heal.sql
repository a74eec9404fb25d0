{# Finish a batch that an earlier run staged and did not commit. -#}
{% macro heal(name) -%}
  {%- do pace(false) -%}
  {% call statement('heal_past') %}{{ apply_past(name, is_replacing=true) }}{% endcall %}
  {%- do apply_current(name) -%}
  {%- do commit(name) -%}
  {%- do forget_state(name) -%}
{%- endmacro %}
