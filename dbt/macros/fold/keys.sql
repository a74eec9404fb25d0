{# The key columns within the fold: `_key_1, _key_2`, with a prefix, or compared between two. -#}
{% macro keys(key, prefix='') -%}
  {%- for k in key %}{{ prefix }}_key_{{ loop.index }}{{ ', ' if not loop.last }}{% endfor -%}
{%- endmacro %}
