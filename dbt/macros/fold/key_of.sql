{# The key of a log row as _key_1, _key_2, ...: of the image after it, or before it; what one image lacks the other has. -#}
{% macro key_of(key, image, other) -%}
  {% for k in key %}coalesce({{ image }}.`{{ k }}`, {{ other }}.`{{ k }}`) as _key_{{ loop.index }}{{ ', ' if not loop.last }}{% endfor %}
{%- endmacro %}
