{# The join condition: same source, same key. -#}
{% macro same_key(key, one, two) -%}
{{ one }}.source = {{ two }}.source
{%- for k in key %} and {{ one }}._key_{{ loop.index }} = {{ two }}._key_{{ loop.index }}{% endfor %}
{%- endmacro %}
