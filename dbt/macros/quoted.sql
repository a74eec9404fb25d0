{# Comma-separated text literals. -#}
{% macro quoted(texts) -%}
  {% for text in texts %}{{ text_literal(text) }}{{ ', ' if not loop.last }}{% endfor %}
{%- endmacro %}


{# Any text as a literal, as inlet.sql.literal. `${` is parted, for Spark puts settings in the place of `${...}`, in
   literals as anywhere. -#}
{% macro text_literal(text) -%}
  '{{ text | replace("\\", "\\\\") | replace("'", "\\'") | replace("${", "$\\{") }}'
{%- endmacro %}


{# Any name as one identifier, as inlet.sql.name. -#}
{% macro identifier(name) -%}
  `{{ name | replace("`", "``") }}`
{%- endmacro %}
