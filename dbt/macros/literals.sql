{# Rows as an inline table; none is SQL NULL. In: name, {column: type}, rows as lists. -#}
{% macro literals(alias, columns, rows) -%}
select {% for column, type in columns.items() %}cast({{ column }} as {{ type }}) as {{ column }}{{ ', ' if not loop.last }}{% endfor %}
  from values
    {% for row in rows -%}
    ({% for value in row %}{{ 'null' if value is none else value if value is number else text_literal(value) }}{{ ', ' if not loop.last }}{% endfor %}){{ ',' if not loop.last }}
    {% endfor -%}
    as {{ alias }}({{ columns | join(', ') }})
{%- endmacro %}
